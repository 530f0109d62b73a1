/* quarrier for C: see docs/c.md, or quarrier.hpp for C++.
 *
 * Errors. A function that can fail returns a quarrier_status, and where its last argument is not NULL, it
 * stores an error there that quarrier_error_free() takes back. It changes nothing where it succeeds. No
 * exception and no panic crosses this border.
 *
 * Pointers. A NULL where an object is needed is an error, not a crash; other pointers must be valid. Text
 * is UTF-8 and ends with a zero byte, and names of files may have any other bytes. What a function returns
 * lives until the object that it belongs to is changed or freed. Every _free() takes NULL.
 *
 * Threads. Several threads may use an object at a time as long as each passes it as a pointer to const; a
 * thread that passes it without const must be alone with it. Where more is allowed, the function says so.
 *
 * fork(). A child may go on with sparse files and stores if no other thread was inside the library at the
 * fork.
 */

#ifndef QUARRIER_H
#define QUARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The version of this header, as quarrier_version() has that of the library. */
#define QUARRIER_VERSION "0.1.0"

/** A length, limit or time that is not known or not set. */
#define QUARRIER_UNKNOWN UINT64_MAX

/**
 * What a call came to. Later versions may add values.
 */
enum quarrier_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It succeeded.
     */
    QUARRIER_STATUS_OK = 0,
    /**
     * A callback ended it; everything handed out before is right.
     */
    QUARRIER_STATUS_STOPPED = 1,
    /**
     * An argument cannot be used: NULL, no UTF-8, a range that ends before it begins.
     */
    QUARRIER_STATUS_ARGUMENT = 2,
    /**
     * Bytes were read that the sparse file does not hold; see quarrier_error_span().
     */
    QUARRIER_STATUS_NOT_HELD = 3,
    /**
     * A write differs from the bytes held; see quarrier_error_span() and quarrier_error_values().
     */
    QUARRIER_STATUS_CONFLICT = 4,
    /**
     * A range passes the end of the file.
     */
    QUARRIER_STATUS_BEYOND_LENGTH = 5,
    /**
     * A range passes the greatest offset, 2^64 - 1.
     */
    QUARRIER_STATUS_OVERFLOW = 6,
    /**
     * Bytes are pinned; see quarrier_error_span().
     */
    QUARRIER_STATUS_PINNED = 7,
    /**
     * Stored bytes are damaged.
     */
    QUARRIER_STATUS_CORRUPT = 8,
    /**
     * The store has no file of this name.
     */
    QUARRIER_STATUS_UNKNOWN_FILE = 9,
    /**
     * The store has a file of this name already.
     */
    QUARRIER_STATUS_DUPLICATE_FILE = 10,
    /**
     * An internal error: a defect of the library. Please report it.
     */
    QUARRIER_STATUS_INTERNAL = 20,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quarrier_status quarrier_status;
#else
typedef int32_t quarrier_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Bytes that the library made.
 */
typedef struct quarrier_bytes quarrier_bytes;

/**
 * Why a call failed.
 */
typedef struct quarrier_error quarrier_error;

/**
 * Plans the requests of one reader, from its reads so far: more than is asked for, where that saves a
 * request.
 */
typedef struct quarrier_read_ahead quarrier_read_ahead;

/**
 * The parts of a file that were fetched so far, by their place in it.
 *
 * One that lies in a store may be used by many threads, in any way. One that does not follows the rule at
 * the head of this file: many threads read, or one writes.
 */
typedef struct quarrier_sparse_file quarrier_sparse_file;

/**
 * Sparse files by name, which hold no more bytes together than their budget. Many threads may use it in any
 * way, and the files in it too.
 */
typedef struct quarrier_sparse_store quarrier_sparse_store;

/**
 * A range of a file: length bytes from offset on.
 */
typedef struct quarrier_span {
    /**
     * Of the first byte, from the file's start.
     */
    uint64_t offset;
    /**
     * In bytes.
     */
    uint64_t length;
} quarrier_span;

/**
 * What requests cost, and what they may look like. quarrier_cost_model_default() fills it.
 *
 * A hole between two missing ranges is fetched along with them where its bytes cost no more than a request
 * of its own.
 */
typedef struct quarrier_cost_model {
    /**
     * sizeof(quarrier_cost_model).
     */
    size_t struct_bytes;
    /**
     * From a request to its first byte.
     */
    double latency_seconds;
    /**
     * How fast bytes come after that. 0 or less: bytes take no time.
     */
    double bytes_per_second;
    /**
     * Price of a request, in any currency.
     */
    double price_per_request;
    /**
     * Price of a byte, in the same currency.
     */
    double price_per_byte;
    /**
     * How many seconds one unit of the currency is worth.
     */
    double seconds_per_price;
    /**
     * The most bytes of a request; 0: any number.
     */
    uint64_t request_bytes_max;
    /**
     * Requests begin and end at multiples of this, but for the file's end; 0 and 1: anywhere.
     */
    uint64_t alignment;
} quarrier_cost_model;

/**
 * How a sparse file begins. `quarrier_sparse_options options = {.struct_bytes = sizeof options};` sets every field to its
 * default.
 */
typedef struct quarrier_sparse_options {
    /**
     * sizeof(quarrier_sparse_options).
     */
    size_t struct_bytes;
    /**
     * When the file was last modified, in seconds since 1970; counts where has_modified is not 0.
     */
    double modified;
    /**
     * The length of the file in bytes; counts where has_length is not 0. Nothing beyond it is needed or
     * accepted.
     */
    uint64_t length;
    /**
     * The entity tag of this version of the file, or NULL.
     */
    const char *etag;
    /**
     * Whether modified is set.
     */
    uint8_t has_modified;
    /**
     * Whether length is set.
     */
    uint8_t has_length;
    /**
     * Whether a write that differs from the bytes held replaces them. By default it fails.
     */
    uint8_t replaces;
    /**
     * Whether memory is overwritten before it is given back.
     */
    uint8_t wipes;
} quarrier_sparse_options;

/**
 * What was asked of a file since it was made.
 * `quarrier_sparse_counters counters = {.struct_bytes = sizeof counters};` before it is filled.
 */
typedef struct quarrier_sparse_counters {
    /**
     * sizeof(quarrier_sparse_counters).
     */
    size_t struct_bytes;
    /**
     * Reads that found all their bytes.
     */
    uint64_t hits;
    /**
     * Reads that did not.
     */
    uint64_t misses;
    /**
     * Bytes read.
     */
    uint64_t read_bytes;
    /**
     * Writes that were accepted.
     */
    uint64_t writes;
    /**
     * Bytes written.
     */
    uint64_t written_bytes;
    /**
     * Bytes written that were held already: fetched in vain.
     */
    uint64_t wasted_bytes;
    /**
     * Bytes erased.
     */
    uint64_t erased_bytes;
    /**
     * Bytes evicted to keep within a budget.
     */
    uint64_t evicted_bytes;
} quarrier_sparse_counters;

/**
 * Takes the name of a file, which lives as long as the call. 0 goes on, anything else stops.
 */
typedef int (*quarrier_id_callback)(const char *id, void *context);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Of which kind the error is.
 */
quarrier_status quarrier_error_status(const struct quarrier_error *error);

/**
 * What went wrong, where, and what to try: one line. It lives as long as the error.
 */
const char *quarrier_error_message(const struct quarrier_error *error);

/**
 * The range that the error is about: missing, pinned, or beyond the end; of a conflict the byte that
 * differs. False where it is about none.
 */
bool quarrier_error_span(const struct quarrier_error *error,
                         struct quarrier_span *span);

/**
 * Of a conflict, the value of the byte as held and as given. False for other errors.
 */
bool quarrier_error_values(const struct quarrier_error *error, uint8_t *held, uint8_t *given);

/**
 * The error number (errno) where the system refused, else 0.
 */
int32_t quarrier_error_errno(const struct quarrier_error *error);

/**
 * Frees an error.
 */
void quarrier_error_free(struct quarrier_error *error);

/**
 * Makes a planner for whom requests cost as model says; NULL: one that learns that from
 * quarrier_read_ahead_observe(). Free it with quarrier_read_ahead_free().
 */
quarrier_status quarrier_read_ahead_new(const struct quarrier_cost_model *model,
                                        struct quarrier_read_ahead **ahead,
                                        struct quarrier_error **error);

/**
 * Frees a planner.
 */
void quarrier_read_ahead_free(struct quarrier_read_ahead *ahead);

/**
 * Gives the requests to make before the range of file can be read: none where all of it is held. requests
 * gets the first of count, which live until the next call.
 */
quarrier_status quarrier_read_ahead_plan(struct quarrier_read_ahead *ahead,
                                         const struct quarrier_sparse_file *file,
                                         uint64_t offset,
                                         uint64_t length,
                                         const struct quarrier_span **requests,
                                         size_t *count,
                                         struct quarrier_error **error);

/**
 * Takes note of a request: its bytes, the seconds until the first came, and until the last.
 */
quarrier_status quarrier_read_ahead_observe(struct quarrier_read_ahead *ahead,
                                            uint64_t bytes,
                                            double first_byte_seconds,
                                            double all_seconds,
                                            struct quarrier_error **error);

/**
 * Bytes that come within the time of a request, as far as is known.
 */
uint64_t quarrier_read_ahead_reach_bytes(const struct quarrier_read_ahead *ahead);

/**
 * The first request of a file of this name whose length is not known yet: true and its head; or false,
 * where the name says that its directory is at its end: then ask for the last 64 KiB.
 */
bool quarrier_read_ahead_first(const char *name,
                               struct quarrier_span *head);

/**
 * As quarrier_sparse_file_need(), of many ranges, which may overlap and come in any order.
 */
quarrier_status quarrier_sparse_file_need_many(const struct quarrier_sparse_file *file,
                                               const struct quarrier_span *wanted_spans,
                                               size_t wanted_count,
                                               uint64_t greedy,
                                               struct quarrier_span *spans,
                                               size_t capacity,
                                               size_t *count,
                                               struct quarrier_error **error);

/**
 * Reads many ranges, one behind the other, into buffer, which has length bytes: as many as the ranges.
 */
quarrier_status quarrier_sparse_file_read_many(const struct quarrier_sparse_file *file,
                                               const struct quarrier_span *spans,
                                               size_t span_count,
                                               void *buffer,
                                               size_t length,
                                               struct quarrier_error **error);

/**
 * Takes many ranges in, whose bytes lie one behind the other in data, which has length bytes: as many as
 * the ranges. Where the call fails, nothing is written.
 */
quarrier_status quarrier_sparse_file_write_many(struct quarrier_sparse_file *file,
                                                const struct quarrier_span *spans,
                                                size_t span_count,
                                                const void *data,
                                                size_t length,
                                                uint64_t *new_bytes,
                                                struct quarrier_error **error);

/**
 * The first of the bytes.
 */
const void *quarrier_bytes_data(const struct quarrier_bytes *bytes);

/**
 * How many there are.
 */
size_t quarrier_bytes_length(const struct quarrier_bytes *bytes);

/**
 * Frees the bytes.
 */
void quarrier_bytes_free(struct quarrier_bytes *bytes);

/**
 * Gives all of a file but its pins as bytes, with a checksum.
 */
quarrier_status quarrier_sparse_file_to_bytes(const struct quarrier_sparse_file *file,
                                              struct quarrier_bytes **stored,
                                              struct quarrier_error **error);

/**
 * Makes the file that quarrier_sparse_file_to_bytes() was asked of. QUARRIER_STATUS_CORRUPT where the bytes
 * are anything else.
 */
quarrier_status quarrier_sparse_file_from_bytes(const void *data,
                                                size_t length,
                                                struct quarrier_sparse_file **file,
                                                struct quarrier_error **error);

/**
 * Sets all but struct_bytes, which has to be set before: a server some 20 ms away, 50 MB/s, free of charge,
 * requests of 16 MiB at most.
 */
quarrier_status quarrier_cost_model_default(struct quarrier_cost_model *model,
                                            struct quarrier_error **error);

/**
 * Gives the cheapest requests for what is missing of many ranges, which may overlap and come in any order.
 * model may be NULL: the default. The rest is as for quarrier_sparse_file_need().
 */
quarrier_status quarrier_sparse_file_need_by_cost(const struct quarrier_sparse_file *file,
                                                  const struct quarrier_span *wanted_spans,
                                                  size_t wanted_count,
                                                  const struct quarrier_cost_model *model,
                                                  struct quarrier_span *spans,
                                                  size_t capacity,
                                                  size_t *count,
                                                  struct quarrier_error **error);

/**
 * Makes a file of which nothing is held. options may be NULL. Free it with quarrier_sparse_file_free().
 */
quarrier_status quarrier_sparse_file_new(const char *id,
                                         const struct quarrier_sparse_options *options,
                                         struct quarrier_sparse_file **file,
                                         struct quarrier_error **error);

/**
 * Frees a file, or gives back one of a store, which keeps its bytes.
 */
void quarrier_sparse_file_free(struct quarrier_sparse_file *file);

/**
 * Writes the name of the file, as text that ends with a zero byte, to buffer, as far as that goes, and
 * returns the length that the name has without the zero byte.
 */
size_t quarrier_sparse_file_id(const struct quarrier_sparse_file *file,
                               char *buffer,
                               size_t capacity);

/**
 * When the file was last modified, in seconds since 1970. False where that is not known.
 */
bool quarrier_sparse_file_modified(const struct quarrier_sparse_file *file, double *seconds);

/**
 * The length of the file in bytes. False where that is not known.
 */
bool quarrier_sparse_file_length(const struct quarrier_sparse_file *file, uint64_t *length);

/**
 * Sets the length of the file in bytes. QUARRIER_STATUS_BEYOND_LENGTH where a byte behind it is held.
 */
quarrier_status quarrier_sparse_file_set_length(struct quarrier_sparse_file *file,
                                                uint64_t length,
                                                struct quarrier_error **error);

/**
 * Whether all bytes of the range are held.
 */
bool quarrier_sparse_file_has(const struct quarrier_sparse_file *file,
                              uint64_t offset,
                              uint64_t length);

/**
 * Takes length bytes of data in, which join the blocks that they touch. new_bytes, where it is not NULL,
 * gets how many of them were not held before. Where the call fails, nothing is written.
 */
quarrier_status quarrier_sparse_file_write(struct quarrier_sparse_file *file,
                                           uint64_t offset,
                                           const void *data,
                                           size_t length,
                                           uint64_t *new_bytes,
                                           struct quarrier_error **error);

/**
 * Reads length bytes into buffer. QUARRIER_STATUS_NOT_HELD where one is missing; buffer may have been
 * written to then.
 */
quarrier_status quarrier_sparse_file_read(const struct quarrier_sparse_file *file,
                                          uint64_t offset,
                                          void *buffer,
                                          size_t length,
                                          struct quarrier_error **error);

/**
 * Gives the ranges that are missing, in order, at least greedy bytes long where greedy is not 0. The first
 * ones are written to spans, which has room for capacity of them; count gets how many there are in all. If
 * that is more, make room for as many and call again.
 */
quarrier_status quarrier_sparse_file_need(const struct quarrier_sparse_file *file,
                                          uint64_t offset,
                                          uint64_t length,
                                          uint64_t greedy,
                                          struct quarrier_span *spans,
                                          size_t capacity,
                                          size_t *count,
                                          struct quarrier_error **error);

/**
 * Erases the bytes held of the range; erased, where it is not NULL, gets how many those were.
 * QUARRIER_STATUS_PINNED where one is pinned; then nothing is erased.
 */
quarrier_status quarrier_sparse_file_erase(struct quarrier_sparse_file *file,
                                           uint64_t offset,
                                           uint64_t length,
                                           uint64_t *erased,
                                           struct quarrier_error **error);

/**
 * Erases everything that is not pinned, and returns how many bytes that were.
 */
uint64_t quarrier_sparse_file_clear(struct quarrier_sparse_file *file);

/**
 * Evicts bytes, those first that were not used for longest, until at most bytes_max are held, and returns
 * how many those were. Pinned bytes stay.
 */
uint64_t quarrier_sparse_file_evict(struct quarrier_sparse_file *file,
                                    uint64_t bytes_max);

/**
 * Keeps a range from being evicted or erased until it is unpinned as often as it was pinned. Its bytes need
 * not be held.
 */
quarrier_status quarrier_sparse_file_pin(struct quarrier_sparse_file *file,
                                         uint64_t offset,
                                         uint64_t length,
                                         struct quarrier_error **error);

/**
 * Takes back one quarrier_sparse_file_pin() of exactly this range. QUARRIER_STATUS_PINNED where there is
 * none.
 */
quarrier_status quarrier_sparse_file_unpin(struct quarrier_sparse_file *file,
                                           uint64_t offset,
                                           uint64_t length,
                                           struct quarrier_error **error);

/**
 * Gives the blocks that are held, in order, none touching another; as quarrier_sparse_file_need() does.
 */
quarrier_status quarrier_sparse_file_blocks(const struct quarrier_sparse_file *file,
                                            struct quarrier_span *spans,
                                            size_t capacity,
                                            size_t *count,
                                            struct quarrier_error **error);

/**
 * Bytes held.
 */
uint64_t quarrier_sparse_file_num_bytes(const struct quarrier_sparse_file *file);

/**
 * Blocks held.
 */
size_t quarrier_sparse_file_num_blocks(const struct quarrier_sparse_file *file);

/**
 * Bytes of memory that the file takes.
 */
size_t quarrier_sparse_file_memory_bytes(const struct quarrier_sparse_file *file);

/**
 * What was asked of the file so far.
 */
quarrier_status quarrier_sparse_file_counters(const struct quarrier_sparse_file *file,
                                              struct quarrier_sparse_counters *counters,
                                              struct quarrier_error **error);

/**
 * Makes a store whose files hold at most bytes_max bytes together; QUARRIER_UNKNOWN: any number. Free it
 * with quarrier_sparse_store_free().
 */
quarrier_status quarrier_sparse_store_new(uint64_t bytes_max,
                                          struct quarrier_sparse_store **store,
                                          struct quarrier_error **error);

/**
 * Frees a store. Files of it that callers have live on, outside of any budget.
 */
void quarrier_sparse_store_free(struct quarrier_sparse_store *store);

/**
 * Puts a file in, under its name. The caller still has to free it, and may go on to use it; the calling
 * thread must be alone with it now. QUARRIER_STATUS_DUPLICATE_FILE where the store has one of this name,
 * QUARRIER_STATUS_ARGUMENT where it is or was in a store; then the file stays as it is.
 */
quarrier_status quarrier_sparse_store_insert(const struct quarrier_sparse_store *store,
                                             struct quarrier_sparse_file *file,
                                             struct quarrier_error **error);

/**
 * Gives the file of this name, to be freed by the caller. QUARRIER_STATUS_UNKNOWN_FILE where there is none.
 */
quarrier_status quarrier_sparse_store_get(const struct quarrier_sparse_store *store,
                                          const char *id,
                                          struct quarrier_sparse_file **file,
                                          struct quarrier_error **error);

/**
 * Whether there is a file of this name.
 */
bool quarrier_sparse_store_has(const struct quarrier_sparse_store *store, const char *id);

/**
 * Takes the file of this name out of the store. Callers that have it may go on to use it.
 */
quarrier_status quarrier_sparse_store_remove(const struct quarrier_sparse_store *store,
                                             const char *id,
                                             struct quarrier_error **error);

/**
 * How many files there are.
 */
size_t quarrier_sparse_store_num_files(const struct quarrier_sparse_store *store);

/**
 * Bytes held by all files.
 */
uint64_t quarrier_sparse_store_num_bytes(const struct quarrier_sparse_store *store);

/**
 * Evicts bytes of any file, those first that were not used for longest, until at most bytes_max are held,
 * and returns how many those were.
 */
uint64_t quarrier_sparse_store_evict(const struct quarrier_sparse_store *store,
                                     uint64_t bytes_max);

/**
 * Calls back with the name of each file, in order, until the callback returns something else than 0. The
 * store may change meanwhile: the names are those at the call.
 */
quarrier_status quarrier_sparse_store_ids(const struct quarrier_sparse_store *store,
                                          quarrier_id_callback callback,
                                          void *context,
                                          struct quarrier_error **error);

/**
 * Gives all files but their pins as bytes, with checksums.
 */
quarrier_status quarrier_sparse_store_to_bytes(const struct quarrier_sparse_store *store,
                                               struct quarrier_bytes **stored,
                                               struct quarrier_error **error);

/**
 * Makes the store that quarrier_sparse_store_to_bytes() was asked of, with a budget as for
 * quarrier_sparse_store_new().
 */
quarrier_status quarrier_sparse_store_from_bytes(const void *data,
                                                 size_t length,
                                                 uint64_t bytes_max,
                                                 struct quarrier_sparse_store **store,
                                                 struct quarrier_error **error);

/**
 * The version of the library, as "0.1.0".
 */
const char *quarrier_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* QUARRIER_H */
