/* quarrier for C: see docs/c.md, or quarrier.hpp for C++.
 *
 * Errors. A function that can fail returns a quarrier_status. If it fails and its last argument is not NULL,
 * it stores an error there, which quarrier_error_free() frees; on success it stores nothing. No exception
 * and no panic crosses this interface.
 *
 * Pointers. A NULL where an object is needed is an error, not a crash; other pointers must be valid. Strings
 * are UTF-8 and end with a zero byte, but names of files may contain any other bytes. A returned pointer is
 * valid until the object that it belongs to is changed or freed. Every _free() accepts NULL.
 *
 * Threads. Several threads may use an object at the same time if each passes it as a pointer to const; a
 * thread that passes it without const must be the only one to use it. Functions that allow more say so.
 * The same holds for memory: during a call nobody else may write to bytes and strings that the call reads,
 * or use buffers that it fills, neither a thread of this process nor another process that shares them.
 *
 * fork(). A child may continue to use sparse files, stores and tables if no other thread was inside the
 * library at the fork. Remote sources have a thread, which the child lacks: open them after the fork.
 */

#ifndef QUARRIER_H
#define QUARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The version of this header; quarrier_version() returns that of the library. */
#define QUARRIER_VERSION "0.1.0"

/** A length, limit or time that is unknown or not set. */
#define QUARRIER_UNKNOWN UINT64_MAX

/* The structures that pass columns between libraries: the Arrow C data and C stream interfaces,
 * https://arrow.apache.org/docs/format/CDataInterface.html. */
#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif

#ifdef __cplusplus
}
#endif

/**
 * The result of a call. Later versions may add values.
 */
enum quarrier_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The call succeeded.
     */
    QUARRIER_STATUS_OK = 0,
    /**
     * A callback or a quarrier_stop ended the call; everything passed to callbacks before is correct.
     */
    QUARRIER_STATUS_STOPPED = 1,
    /**
     * An argument is invalid: NULL, not UTF-8, a range that ends before it begins.
     */
    QUARRIER_STATUS_ARGUMENT = 2,
    /**
     * A read touched bytes that the sparse file does not hold; see quarrier_error_span().
     */
    QUARRIER_STATUS_NOT_HELD = 3,
    /**
     * A write differs from the bytes held; see quarrier_error_span() and quarrier_error_values().
     */
    QUARRIER_STATUS_CONFLICT = 4,
    /**
     * A range extends past the end of the file.
     */
    QUARRIER_STATUS_BEYOND_LENGTH = 5,
    /**
     * A range extends past the greatest offset, 2^64 - 1.
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
     * The store already has a file of this name.
     */
    QUARRIER_STATUS_DUPLICATE_FILE = 10,
    /**
     * A name refers to nothing, locally or on a server.
     */
    QUARRIER_STATUS_NOT_FOUND = 11,
    /**
     * The operating system returned an error; see quarrier_error_errno().
     */
    QUARRIER_STATUS_SYSTEM = 12,
    /**
     * A name or source cannot be used in this way.
     */
    QUARRIER_STATUS_UNUSABLE = 13,
    /**
     * A remote source failed.
     */
    QUARRIER_STATUS_REMOTE = 14,
    /**
     * A pattern, a set of patterns or an engine is invalid.
     */
    QUARRIER_STATUS_PATTERN = 15,
    /**
     * A condition or statement is invalid, names a missing column, or has no value for a row.
     */
    QUARRIER_STATUS_QUERY = 16,
    /**
     * A source is damaged, or does not have the expected content.
     */
    QUARRIER_STATUS_DATA = 17,
    /**
     * The call needs more memory than there is.
     */
    QUARRIER_STATUS_MEMORY = 18,
    /**
     * The object is used in a child that was forked after the object was created.
     */
    QUARRIER_STATUS_FORKED = 19,
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

typedef struct quarrier_bytes quarrier_bytes;

/**
 * Why a call failed.
 */
typedef struct quarrier_error quarrier_error;

/**
 * Plans the requests of one reader from its earlier reads: fetches ahead if that saves a request.
 */
typedef struct quarrier_read_ahead quarrier_read_ahead;

/**
 * The account of a search, a carving run or a filter.
 */
typedef struct quarrier_report quarrier_report;

/**
 * Patterns, and the options of a search for them.
 */
typedef struct quarrier_search quarrier_search;

/**
 * Zeroed memory that this process can share with others, on huge pages if the system has some. A forked
 * child shares the same memory; another process gets it by its file descriptor.
 */
typedef struct quarrier_shared_region quarrier_shared_region;

/**
 * An object with bytes at offsets. Several threads may read it at the same time.
 */
typedef struct quarrier_source quarrier_source;

/**
 * A partial copy of a file: the parts fetched so far, by offset.
 *
 * Several threads may use a file in a store, in any way. Any other file follows the rule at the head of
 * this header: several threads read, or one writes.
 */
typedef struct quarrier_sparse_file quarrier_sparse_file;

/**
 * Sparse files by name, with a shared budget of bytes. Several threads may use a store in any way, and the
 * files in it too.
 */
typedef struct quarrier_sparse_store quarrier_sparse_store;

/**
 * A stop request, which may come from any thread. Calls end soon after the request, not at once.
 */
typedef struct quarrier_stop quarrier_stop;

/**
 * Messages as columns, or the rows of an answer. A table never changes.
 */
typedef struct quarrier_table quarrier_table;

/**
 * The types to carve, and the output folder. `quarrier_carve_options options = {.struct_bytes = sizeof options};` sets every field
 * to its default.
 */
typedef struct quarrier_carve_options {
    /**
     * sizeof(quarrier_carve_options).
     */
    size_t struct_bytes;
    /**
     * The folder to write files into, new or empty; NULL to write nothing.
     */
    const char *folder;
    /**
     * The types to carve, such as "jpg,png"; NULL for all.
     */
    const char *types;
    /**
     * A file with signatures of more types, or NULL.
     */
    const char *signatures;
    /**
     * The first offset to carve.
     */
    uint64_t range_start;
    /**
     * The offset after the last byte to carve; 0 for the end of the source.
     */
    uint64_t range_end;
    /**
     * Maximum length of a file in bytes; 0 for no limit.
     */
    uint64_t file_bytes_max;
    /**
     * Maximum memory for reassembling files, in bytes; 0 for 1 GiB.
     */
    uint64_t memory_bytes_max;
    /**
     * The number of threads; 0 for one per CPU.
     */
    size_t workers;
    /**
     * Whether to resume the earlier run that the folder holds.
     */
    uint8_t resume;
    /**
     * Whether to keep only valid files.
     */
    uint8_t valid_only;
    /**
     * Whether to carve files inside archives, too.
     */
    uint8_t embedded;
    /**
     * Whether to carve only space that file systems report as free.
     */
    uint8_t unallocated;
    /**
     * Whether to search exhaustively for fragments.
     */
    uint8_t thorough;
    /**
     * Whether to omit the SHA-256 of rows, which costs a read of all bytes. The report of a folder
     * always has it.
     */
    uint8_t no_digests;
} quarrier_carve_options;

/**
 * A range of a file: length bytes from offset on.
 */
typedef struct quarrier_span {
    /**
     * The first byte's offset from the file's start.
     */
    uint64_t offset;
    /**
     * The length in bytes.
     */
    uint64_t length;
} quarrier_span;

/**
 * A carved file. All pointers are valid until the callback returns.
 */
typedef struct quarrier_carved_file {
    /**
     * The name of the source.
     */
    const char *source;
    /**
     * The type of the file, such as "jpg".
     */
    const char *kind;
    /**
     * The offset of its first byte in the source; inside an archive, that of the archive.
     */
    uint64_t offset;
    /**
     * The length of the file in bytes.
     */
    uint64_t length;
    /**
     * The ranges of the source that hold its bytes; none inside an archive.
     */
    const struct quarrier_span *extents;
    /**
     * The number of extents.
     */
    size_t extent_count;
    /**
     * "valid", "partial" or "header".
     */
    const char *status;
    /**
     * Why the file is not valid; empty if it is.
     */
    const char *reason;
    /**
     * The SHA-256 in hexadecimal, or empty.
     */
    const char *sha256;
    /**
     * The path of the file, relative to the folder; without a folder, the path it would have.
     */
    const char *path;
    /**
     * The path to it from the outermost archive, or NULL.
     */
    const char *container;
} quarrier_carved_file;

/**
 * Receives a carved file. Return 0 to continue, any other value to end the run. Files arrive one at a
 * time, on any thread, approximately in the order of their offsets. The callback must not throw, nor
 * leave by longjmp().
 */
typedef int (*quarrier_carved_callback)(const struct quarrier_carved_file *file, void *context);

/**
 * Options of a filter. `quarrier_filter_options options = {.struct_bytes = sizeof options};` sets every
 * field to its default.
 */
typedef struct quarrier_filter_options {
    /**
     * sizeof(quarrier_filter_options).
     */
    size_t struct_bytes;
    /**
     * "ndjson", "fix", "nvfix", "csv" or "xml"; NULL to detect the format of each source.
     */
    const char *format;
    /**
     * The columns of an Arrow stream, such as "side,qty"; NULL for those of the first messages.
     */
    const char *columns;
    /**
     * The path of a file that lists rejected messages, one JSON object a line, or NULL.
     */
    const char *rejects;
    /**
     * Maximum number of messages; 0 for no limit.
     */
    uint64_t matches_max;
    /**
     * The number of threads; 0 for one per CPU.
     */
    size_t workers;
} quarrier_filter_options;

/**
 * A message. All pointers are valid until the callback returns.
 */
typedef struct quarrier_message {
    /**
     * The name of the source.
     */
    const char *source;
    /**
     * The offset of the message, after decompression.
     */
    uint64_t offset;
    /**
     * The bytes of the message, without the line ending.
     */
    const void *data;
    /**
     * The number of bytes.
     */
    size_t length;
} quarrier_message;

/**
 * Receives a message. Return 0 to continue, any other value to end the run. Messages arrive in the order of
 * their source, one at a time, on any thread. The callback must not throw, nor leave by longjmp().
 */
typedef int (*quarrier_message_callback)(const struct quarrier_message *message, void *context);

/**
 * Options of a search. `quarrier_search_options options = {.struct_bytes = sizeof options};` sets every
 * field to its default.
 */
typedef struct quarrier_search_options {
    /**
     * sizeof(quarrier_search_options).
     */
    size_t struct_bytes;
    /**
     * Report only findings at multiples of this; 0 for any offset.
     */
    uint64_t aligned;
    /**
     * Maximum number of findings; 0 for no limit.
     */
    uint64_t findings_max;
    /**
     * The first offset to search.
     */
    uint64_t range_start;
    /**
     * The offset after the last byte to search; 0 for the end of the source.
     */
    uint64_t range_end;
    /**
     * Maximum length of a regex match in bytes; 0 for 64 KiB. A longer match is an error.
     */
    size_t regex_length_max;
    /**
     * The number of threads; 0 for one per CPU.
     */
    size_t workers;
    /**
     * The engine for literals and hex patterns; NULL for the best one.
     */
    const char *engine;
    /**
     * "cpu", "gpu", "gpu:1", "auto" or "all"; NULL: "cpu".
     */
    const char *device;
    /**
     * Code pages in which to search for literals too, such as "windows-1251,koi8-r", or NULL.
     */
    const char *encodings;
    /**
     * Built-in scanners, such as "email,iban", or NULL. They are numbered after the patterns.
     */
    const char *features;
    /**
     * Whether to ignore case.
     */
    uint8_t ignore_case;
    /**
     * Whether to search for literals as UTF-16LE, too.
     */
    uint8_t utf16;
    /**
     * Whether to search for literals as UTF-16BE, too.
     */
    uint8_t utf16be;
    /**
     * Whether to search for literals under XOR with one byte, too.
     */
    uint8_t xored;
    /**
     * Whether to search for literals within base64, too.
     */
    uint8_t base64;
    /**
     * Whether to report only whole words.
     */
    uint8_t word;
} quarrier_search_options;

/**
 * A finding. All pointers are valid until the callback returns.
 */
typedef struct quarrier_finding {
    /**
     * The name of the source.
     */
    const char *source;
    /**
     * The offset of the match in the source.
     */
    uint64_t offset;
    /**
     * The length of the match in bytes.
     */
    uint64_t length;
    /**
     * The number of the pattern, from 0, in the order in which patterns were added.
     */
    size_t pattern;
    /**
     * The name of the pattern, or the pattern as written.
     */
    const char *pattern_name;
    /**
     * The bytes found, at most 4,096 of them.
     */
    const void *found;
    /**
     * The number of bytes in found.
     */
    size_t found_length;
} quarrier_finding;

/**
 * Receives a finding. Return 0 to continue, any other value to end the search. Findings arrive in the
 * order of their offsets, one at a time, on any thread. The callback must not throw, nor leave by
 * longjmp().
 */
typedef int (*quarrier_finding_callback)(const struct quarrier_finding *finding, void *context);

/**
 * Options for opening sources. `quarrier_open_options options = {.struct_bytes = sizeof options};` sets
 * every field to its default.
 */
typedef struct quarrier_open_options {
    /**
     * sizeof(quarrier_open_options).
     */
    size_t struct_bytes;
    /**
     * The folder that caches fetched bytes, for later runs and other processes, or NULL for none.
     */
    const char *cache;
    /**
     * Maximum size of that folder in bytes; 0 for 10 GiB.
     */
    uint64_t cache_bytes_max;
    /**
     * Maximum memory for bytes of remote sources, in bytes; 0 for the default.
     */
    uint64_t memory_bytes_max;
    /**
     * Maximum number of concurrent requests; 0 for the default.
     */
    size_t requests_max;
    /**
     * Whether reads of local files bypass the page cache (O_DIRECT).
     */
    uint8_t direct;
} quarrier_open_options;

/**
 * The cost of a remote source's reads so far. Set `quarrier_remote_counters counters = {.struct_bytes
 * = sizeof counters};` before a call fills it.
 */
typedef struct quarrier_remote_counters {
    /**
     * sizeof(quarrier_remote_counters).
     */
    size_t struct_bytes;
    /**
     * The number of requests sent.
     */
    uint64_t requests;
    /**
     * The number of bytes received.
     */
    uint64_t bytes_fetched;
    /**
     * The number of bytes requested.
     */
    uint64_t bytes_asked;
    /**
     * The number of bytes read from the cache folder.
     */
    uint64_t bytes_from_disk;
    /**
     * The number of requests that were repeated.
     */
    uint64_t retries;
} quarrier_remote_counters;

/**
 * The cost of requests, and the limits on them. quarrier_cost_model_default() fills it.
 *
 * A hole between two missing ranges is fetched along with them if its bytes cost no more than a separate
 * request.
 */
typedef struct quarrier_cost_model {
    /**
     * sizeof(quarrier_cost_model).
     */
    size_t struct_bytes;
    /**
     * The time from a request to its first byte, in seconds.
     */
    double latency_seconds;
    /**
     * The rate after the first byte. 0 or less: bytes take no time.
     */
    double bytes_per_second;
    /**
     * The price of a request, in any currency.
     */
    double price_per_request;
    /**
     * The price of a byte, in the same currency.
     */
    double price_per_byte;
    /**
     * The value of one unit of the currency, in seconds.
     */
    double seconds_per_price;
    /**
     * Maximum number of bytes in a request; 0 for no limit.
     */
    uint64_t request_bytes_max;
    /**
     * Requests begin and end at multiples of this, except at the end of the file; 0 and 1 for any
     * offset.
     */
    uint64_t alignment;
} quarrier_cost_model;

/**
 * Options of a new sparse file. `quarrier_sparse_options options = {.struct_bytes = sizeof options};` sets
 * every field to its default.
 */
typedef struct quarrier_sparse_options {
    /**
     * sizeof(quarrier_sparse_options).
     */
    size_t struct_bytes;
    /**
     * The modification time of the file, in seconds since 1970; ignored if has_modified is 0.
     */
    double modified;
    /**
     * The length of the file in bytes; ignored if has_length is 0. Nothing beyond it is needed or
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
     * Whether to overwrite memory before freeing it.
     */
    uint8_t wipes;
} quarrier_sparse_options;

/**
 * Counts of the calls on a file since its creation. Set `quarrier_sparse_counters counters =
 * {.struct_bytes = sizeof counters};` before a call fills it.
 */
typedef struct quarrier_sparse_counters {
    /**
     * sizeof(quarrier_sparse_counters).
     */
    size_t struct_bytes;
    /**
     * The number of reads that found all their bytes.
     */
    uint64_t hits;
    /**
     * The number of reads that missed bytes.
     */
    uint64_t misses;
    /**
     * The number of bytes read.
     */
    uint64_t read_bytes;
    /**
     * The number of accepted writes.
     */
    uint64_t writes;
    /**
     * The number of bytes written.
     */
    uint64_t written_bytes;
    /**
     * The number of bytes written that were already held, and so fetched in vain.
     */
    uint64_t wasted_bytes;
    /**
     * The number of bytes erased.
     */
    uint64_t erased_bytes;
    /**
     * The number of bytes evicted to stay within a budget.
     */
    uint64_t evicted_bytes;
} quarrier_sparse_counters;

/**
 * Receives the name of a file, which is valid until the callback returns. Return 0 to continue, any
 * other value to stop.
 */
typedef int (*quarrier_id_callback)(const char *id, void *context);

/**
 * Options for loading messages. `quarrier_table_options options = {.struct_bytes = sizeof options};` sets
 * every field to its default.
 */
typedef struct quarrier_table_options {
    /**
     * sizeof(quarrier_table_options).
     */
    size_t struct_bytes;
    /**
     * "ndjson", "fix", "nvfix", "csv", "xml" or "arrow"; NULL to detect the format of each source.
     */
    const char *format;
    /**
     * The path of a QuickFIX data dictionary, or NULL.
     */
    const char *dictionary;
    /**
     * The number of threads; 0 for one per CPU.
     */
    size_t workers;
    /**
     * Whether to add a column _message with each message verbatim.
     */
    uint8_t keep_bytes;
} quarrier_table_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Carves the source that a name refers to: a path, an image, a URL. options, stop, callback and report may
 * be NULL. Returns QUARRIER_STATUS_STOPPED if the callback or stop ended the run; report is set then, too,
 * and a folder can be resumed.
 */
quarrier_status quarrier_carve(const char *name,
                               const struct quarrier_carve_options *options,
                               const struct quarrier_stop *stop,
                               quarrier_carved_callback callback,
                               void *context,
                               struct quarrier_report **report,
                               struct quarrier_error **error);

/**
 * Carves an open source, like quarrier_carve().
 */
quarrier_status quarrier_carve_source(const struct quarrier_source *source,
                                      const struct quarrier_carve_options *options,
                                      const struct quarrier_stop *stop,
                                      quarrier_carved_callback callback,
                                      void *context,
                                      struct quarrier_report **report,
                                      struct quarrier_error **error);

/**
 * Returns the status of an error.
 */
quarrier_status quarrier_error_status(const struct quarrier_error *error);

/**
 * Returns the message: the problem, its place and what to try, in one line. It is valid as long as the
 * error.
 */
const char *quarrier_error_message(const struct quarrier_error *error);

/**
 * Stores the range that the error is about: missing, pinned, or beyond the end; for a conflict, the
 * byte that differs. Returns false if the error has no range.
 */
bool quarrier_error_span(const struct quarrier_error *error, struct quarrier_span *span);

/**
 * Stores the value of the byte as held and as given, if the error is a conflict. Returns false for
 * other errors.
 */
bool quarrier_error_values(const struct quarrier_error *error, uint8_t *held, uint8_t *given);

/**
 * Returns the error number (errno) of the operating system, or 0 for other errors.
 */
int32_t quarrier_error_errno(const struct quarrier_error *error);

/**
 * Frees an error.
 */
void quarrier_error_free(struct quarrier_error *error);

/**
 * Passes to callback the messages of the source that a name refers to for which an SQL-92 condition is
 * true, verbatim. Without a callback they are only counted. options, stop and report may be NULL.
 * Returns QUARRIER_STATUS_STOPPED if the callback or stop ended the run; report is set then, too.
 */
quarrier_status quarrier_filter(const char *name,
                                const char *condition,
                                const struct quarrier_filter_options *options,
                                const struct quarrier_stop *stop,
                                quarrier_message_callback callback,
                                void *context,
                                struct quarrier_report **report,
                                struct quarrier_error **error);

/**
 * Like quarrier_filter(), but returns the messages as rows: stores an Arrow stream in stream, which the
 * caller must release. All rows are in memory.
 */
quarrier_status quarrier_filter_stream(const char *name,
                                       const char *condition,
                                       const struct quarrier_filter_options *options,
                                       const struct quarrier_stop *stop,
                                       struct ArrowArrayStream *stream,
                                       struct quarrier_report **report,
                                       struct quarrier_error **error);

/**
 * Returns the bytes of the sources that were processed.
 */
uint64_t quarrier_report_bytes(const struct quarrier_report *report);

/**
 * Returns the number of findings, files or messages that were passed to the callback or counted.
 */
uint64_t quarrier_report_rows(const struct quarrier_report *report);

/**
 * Returns the number of rejected messages: those that do not parse.
 */
uint64_t quarrier_report_rejected(const struct quarrier_report *report);

/**
 * Returns the duration of the run in seconds.
 */
double quarrier_report_seconds(const struct quarrier_report *report);

/**
 * Stores the unreadable range number index, from 0: its source, which is valid as long as the report, and
 * the range. Returns false if there are no more. No row includes such bytes.
 */
bool quarrier_report_unreadable(const struct quarrier_report *report,
                                size_t index,
                                const char **source,
                                struct quarrier_span *span);

/**
 * Returns notice number index, from 0, which is valid as long as the report; NULL if there are no more.
 * It is a line to read before trusting the rows: a missing segment of an image, a skipped partition,
 * a damaged file system. It begins with the name of the source.
 */
const char *quarrier_report_notice(const struct quarrier_report *report,
                                   size_t index);

/**
 * Frees a report.
 */
void quarrier_report_free(struct quarrier_report *report);

/**
 * Creates a search without patterns. options may be NULL. Free it with quarrier_search_free().
 */
quarrier_status quarrier_search_new(const struct quarrier_search_options *options,
                                    struct quarrier_search **search,
                                    struct quarrier_error **error);

/**
 * Frees a search.
 */
void quarrier_search_free(struct quarrier_search *search);

/**
 * Adds a string as a literal. name may be NULL: the pattern is then its own name.
 */
quarrier_status quarrier_search_add_text(struct quarrier_search *search,
                                         const char *pattern,
                                         const char *name,
                                         struct quarrier_error **error);

/**
 * Adds bytes as a literal. name may be NULL.
 */
quarrier_status quarrier_search_add_bytes(struct quarrier_search *search,
                                          const void *data,
                                          size_t length,
                                          const char *name,
                                          struct quarrier_error **error);

/**
 * Adds a pattern in hexadecimal: "FF D8 ?? 4? [4-6] (89|50)". name may be NULL.
 */
quarrier_status quarrier_search_add_hex(struct quarrier_search *search,
                                        const char *pattern,
                                        const char *name,
                                        struct quarrier_error **error);

/**
 * Adds a regex over bytes. name may be NULL.
 */
quarrier_status quarrier_search_add_regex(struct quarrier_search *search,
                                          const char *pattern,
                                          const char *name,
                                          struct quarrier_error **error);

/**
 * Adds the patterns of a file, one a line; see docs/patterns.md.
 */
quarrier_status quarrier_search_add_file(struct quarrier_search *search,
                                         const char *file,
                                         struct quarrier_error **error);

/**
 * Searches the source that a name refers to: a path, a folder, a glob, an image, a URL. callback, stop and
 * report may be NULL; without a callback the findings are only counted. Returns QUARRIER_STATUS_STOPPED if
 * the callback or stop ended the search; report is set then, too.
 */
quarrier_status quarrier_search_run(const struct quarrier_search *search,
                                    const char *name,
                                    const struct quarrier_stop *stop,
                                    quarrier_finding_callback callback,
                                    void *context,
                                    struct quarrier_report **report,
                                    struct quarrier_error **error);

/**
 * Searches an open source, like quarrier_search_run().
 */
quarrier_status quarrier_search_run_source(const struct quarrier_search *search,
                                           const struct quarrier_source *source,
                                           const struct quarrier_stop *stop,
                                           quarrier_finding_callback callback,
                                           void *context,
                                           struct quarrier_report **report,
                                           struct quarrier_error **error);

/**
 * Creates a region. Free it with quarrier_shared_region_free().
 */
quarrier_status quarrier_shared_region_new(size_t length,
                                           struct quarrier_shared_region **region,
                                           struct quarrier_error **error);

/**
 * Creates a region over the memory of a file descriptor from another process; the descriptor is
 * duplicated. Nobody may truncate its file.
 */
quarrier_status quarrier_shared_region_from_fd(int32_t fd,
                                               size_t length,
                                               struct quarrier_shared_region **region,
                                               struct quarrier_error **error);

/**
 * Returns the memory. It is valid as long as the region, and any thread may write to it.
 */
void *quarrier_shared_region_data(const struct quarrier_shared_region *region);

/**
 * Returns the length of the region in bytes.
 */
size_t quarrier_shared_region_length(const struct quarrier_shared_region *region);

/**
 * Returns the file descriptor, which the region keeps; -1 for NULL.
 */
int32_t quarrier_shared_region_fd(const struct quarrier_shared_region *region);

/**
 * Frees a region; other processes keep theirs.
 */
void quarrier_shared_region_free(struct quarrier_shared_region *region);

/**
 * Opens a path or a URL: a file, a device, an image of any known format, or a remote object. Only the
 * ranges that are read are fetched. Free it with quarrier_source_free(). options may be NULL.
 *
 * Returns QUARRIER_STATUS_UNUSABLE for a name that can only be read in order, such as a pipe.
 */
quarrier_status quarrier_source_open(const char *name,
                                     const struct quarrier_open_options *options,
                                     struct quarrier_source **source,
                                     struct quarrier_error **error);

/**
 * Creates a source of bytes in memory. The caller keeps the bytes, and must keep them valid until the
 * source is freed. Other threads may change them meanwhile.
 */
quarrier_status quarrier_source_of_memory(const char *name,
                                          const void *data,
                                          size_t length,
                                          struct quarrier_source **source,
                                          struct quarrier_error **error);

/**
 * Frees a source.
 */
void quarrier_source_free(struct quarrier_source *source);

/**
 * Returns the path or URL, without secrets. It is valid as long as the source.
 */
const char *quarrier_source_name(const struct quarrier_source *source);

/**
 * Returns a line to read before trusting the bytes, such as that a segment of an image is missing; NULL if
 * there is none. It is valid as long as the source.
 */
const char *quarrier_source_notice(const struct quarrier_source *source);

/**
 * Returns the length in bytes at the time of opening.
 */
uint64_t quarrier_source_length(const struct quarrier_source *source);

/**
 * Reads at offset until buffer is full or the source ends; stores the number of bytes in read.
 */
quarrier_status quarrier_source_read(const struct quarrier_source *source,
                                     uint64_t offset,
                                     void *buffer,
                                     size_t length,
                                     size_t *read,
                                     struct quarrier_error **error);

/**
 * Reads many ranges consecutively into buffer, whose length must be the sum of their lengths. Of a remote
 * source, the missing bytes of all ranges are fetched first: nearby ranges in one request, and requests
 * concurrently. Returns QUARRIER_STATUS_BEYOND_LENGTH if a range extends past the end.
 */
quarrier_status quarrier_source_read_many(const struct quarrier_source *source,
                                          const struct quarrier_span *spans,
                                          size_t span_count,
                                          void *buffer,
                                          size_t length,
                                          struct quarrier_error **error);

/**
 * Stores the cost of a remote source's reads so far; zeros for a local source.
 */
quarrier_status quarrier_source_counters(const struct quarrier_source *source,
                                         struct quarrier_remote_counters *counters,
                                         struct quarrier_error **error);

/**
 * Creates a planner for the request costs in model; NULL for one that learns the costs from
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
 * Stores the requests to make before the range of file can be read: none if all of it is held. requests
 * gets the first of count requests, which are valid until the next call.
 */
quarrier_status quarrier_read_ahead_plan(struct quarrier_read_ahead *ahead,
                                         const struct quarrier_sparse_file *file,
                                         uint64_t offset,
                                         uint64_t length,
                                         const struct quarrier_span **requests,
                                         size_t *count,
                                         struct quarrier_error **error);

/**
 * Records a request: its bytes, the seconds until the first byte arrived, and until the last.
 */
quarrier_status quarrier_read_ahead_observe(struct quarrier_read_ahead *ahead,
                                            uint64_t bytes,
                                            double first_byte_seconds,
                                            double all_seconds,
                                            struct quarrier_error **error);

/**
 * Returns the number of bytes that arrive within the latency of a request, by current estimates.
 */
uint64_t quarrier_read_ahead_reach_bytes(const struct quarrier_read_ahead *ahead);

/**
 * Plans the first request of a file with this name and unknown length: returns true and stores its
 * head; or returns false if the name says that the file's directory is at its end: then request the
 * last 64 KiB.
 */
bool quarrier_read_ahead_first(const char *name, struct quarrier_span *head);

/**
 * Like quarrier_sparse_file_need(), for many ranges, which may overlap and be in any order.
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
 * Reads many ranges consecutively into buffer, whose length must be the sum of their lengths.
 */
quarrier_status quarrier_sparse_file_read_many(const struct quarrier_sparse_file *file,
                                               const struct quarrier_span *spans,
                                               size_t span_count,
                                               void *buffer,
                                               size_t length,
                                               struct quarrier_error **error);

/**
 * Writes many ranges, whose bytes are consecutive in data; length must be the sum of their lengths.
 * Writes nothing if the call fails.
 */
quarrier_status quarrier_sparse_file_write_many(struct quarrier_sparse_file *file,
                                                const struct quarrier_span *spans,
                                                size_t span_count,
                                                const void *data,
                                                size_t length,
                                                uint64_t *new_bytes,
                                                struct quarrier_error **error);

/**
 * Returns a pointer to the first byte.
 */
const void *quarrier_bytes_data(const struct quarrier_bytes *bytes);

/**
 * Returns the number of bytes.
 */
size_t quarrier_bytes_length(const struct quarrier_bytes *bytes);

/**
 * Frees the bytes.
 */
void quarrier_bytes_free(struct quarrier_bytes *bytes);

/**
 * Serialises a file without its pins, with a checksum.
 */
quarrier_status quarrier_sparse_file_to_bytes(const struct quarrier_sparse_file *file,
                                              struct quarrier_bytes **stored,
                                              struct quarrier_error **error);

/**
 * Restores a file from the bytes of quarrier_sparse_file_to_bytes(). Returns QUARRIER_STATUS_CORRUPT for
 * any other bytes.
 */
quarrier_status quarrier_sparse_file_from_bytes(const void *data,
                                                size_t length,
                                                struct quarrier_sparse_file **file,
                                                struct quarrier_error **error);

/**
 * Sets all fields except struct_bytes, which must be set before: a server about 20 ms away, 50 MB/s, free
 * of charge, requests of at most 16 MiB.
 */
quarrier_status quarrier_cost_model_default(struct quarrier_cost_model *model,
                                            struct quarrier_error **error);

/**
 * Stores the cheapest requests for the missing bytes of many ranges, which may overlap and be in any order.
 * model may be NULL for the default. Otherwise like quarrier_sparse_file_need().
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
 * Creates a file that holds no bytes. options may be NULL. Free it with quarrier_sparse_file_free().
 */
quarrier_status quarrier_sparse_file_new(const char *id,
                                         const struct quarrier_sparse_options *options,
                                         struct quarrier_sparse_file **file,
                                         struct quarrier_error **error);

/**
 * Frees a file, or a handle to a file in a store, which keeps its bytes.
 */
void quarrier_sparse_file_free(struct quarrier_sparse_file *file);

/**
 * Copies the name of the file to buffer as a string that ends with a zero byte, truncated to capacity,
 * and returns the full length of the name without the zero byte.
 */
size_t quarrier_sparse_file_id(const struct quarrier_sparse_file *file,
                               char *buffer,
                               size_t capacity);

/**
 * Stores the modification time of the file, in seconds since 1970. Returns false if it is unknown.
 */
bool quarrier_sparse_file_modified(const struct quarrier_sparse_file *file, double *seconds);

/**
 * Stores the length of the file in bytes. Returns false if it is unknown.
 */
bool quarrier_sparse_file_length(const struct quarrier_sparse_file *file, uint64_t *length);

/**
 * Sets the length of the file in bytes. Returns QUARRIER_STATUS_BEYOND_LENGTH if the file holds a byte
 * beyond it.
 */
quarrier_status quarrier_sparse_file_set_length(struct quarrier_sparse_file *file,
                                                uint64_t length,
                                                struct quarrier_error **error);

/**
 * Returns whether all bytes of the range are held.
 */
bool quarrier_sparse_file_has(const struct quarrier_sparse_file *file,
                              uint64_t offset,
                              uint64_t length);

/**
 * Writes length bytes of data; they join the blocks that they touch. Stores in new_bytes, unless it is
 * NULL, how many of them were not held before. Writes nothing if the call fails.
 */
quarrier_status quarrier_sparse_file_write(struct quarrier_sparse_file *file,
                                           uint64_t offset,
                                           const void *data,
                                           size_t length,
                                           uint64_t *new_bytes,
                                           struct quarrier_error **error);

/**
 * Reads length bytes into buffer. Returns QUARRIER_STATUS_NOT_HELD if one is missing; buffer may be
 * partly written then.
 */
quarrier_status quarrier_sparse_file_read(const struct quarrier_sparse_file *file,
                                          uint64_t offset,
                                          void *buffer,
                                          size_t length,
                                          struct quarrier_error **error);

/**
 * Stores the missing ranges, in order; if greedy is not 0, ranges are at least greedy bytes long. spans
 * has room for capacity ranges and gets the first ones; count gets the total. If count is greater,
 * allocate room for as many and call again.
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
 * Erases the bytes held in the range; stores their number in erased, unless it is NULL. Returns
 * QUARRIER_STATUS_PINNED, and erases nothing, if one of them is pinned.
 */
quarrier_status quarrier_sparse_file_erase(struct quarrier_sparse_file *file,
                                           uint64_t offset,
                                           uint64_t length,
                                           uint64_t *erased,
                                           struct quarrier_error **error);

/**
 * Erases everything that is not pinned, and returns the number of bytes erased.
 */
uint64_t quarrier_sparse_file_clear(struct quarrier_sparse_file *file);

/**
 * Evicts bytes, the least recently used first, until at most bytes_max are held, and returns the number
 * of bytes evicted. Pinned bytes stay.
 */
uint64_t quarrier_sparse_file_evict(struct quarrier_sparse_file *file,
                                    uint64_t bytes_max);

/**
 * Protects a range from eviction and erasure until it is unpinned as often as it was pinned. Its bytes need
 * not be held.
 */
quarrier_status quarrier_sparse_file_pin(struct quarrier_sparse_file *file,
                                         uint64_t offset,
                                         uint64_t length,
                                         struct quarrier_error **error);

/**
 * Undoes one quarrier_sparse_file_pin() of exactly this range. Returns QUARRIER_STATUS_PINNED if there
 * is none.
 */
quarrier_status quarrier_sparse_file_unpin(struct quarrier_sparse_file *file,
                                           uint64_t offset,
                                           uint64_t length,
                                           struct quarrier_error **error);

/**
 * Stores the blocks that are held, in order; no block touches another. Otherwise like
 * quarrier_sparse_file_need().
 */
quarrier_status quarrier_sparse_file_blocks(const struct quarrier_sparse_file *file,
                                            struct quarrier_span *spans,
                                            size_t capacity,
                                            size_t *count,
                                            struct quarrier_error **error);

/**
 * Returns the offset after the last byte held, or 0 if none is held.
 */
uint64_t quarrier_sparse_file_held_end(const struct quarrier_sparse_file *file);

/**
 * Returns the number of bytes held.
 */
uint64_t quarrier_sparse_file_num_bytes(const struct quarrier_sparse_file *file);

/**
 * Returns the number of blocks held.
 */
size_t quarrier_sparse_file_num_blocks(const struct quarrier_sparse_file *file);

/**
 * Returns the memory of the file in bytes.
 */
size_t quarrier_sparse_file_memory_bytes(const struct quarrier_sparse_file *file);

/**
 * Stores the counts of the calls on the file so far.
 */
quarrier_status quarrier_sparse_file_counters(const struct quarrier_sparse_file *file,
                                              struct quarrier_sparse_counters *counters,
                                              struct quarrier_error **error);

/**
 * Creates a store whose files hold at most bytes_max bytes together; QUARRIER_UNKNOWN for no limit. Free it
 * with quarrier_sparse_store_free().
 */
quarrier_status quarrier_sparse_store_new(uint64_t bytes_max,
                                          struct quarrier_sparse_store **store,
                                          struct quarrier_error **error);

/**
 * Frees a store. Files that callers have from it remain valid, outside of any budget.
 */
void quarrier_sparse_store_free(struct quarrier_sparse_store *store);

/**
 * Adds a file under its name. The caller must still free it, and may continue to use it; during this
 * call, no other thread may use it. Returns QUARRIER_STATUS_DUPLICATE_FILE if the store has a file of
 * this name, QUARRIER_STATUS_ARGUMENT if the file is or was in a store; the file then stays unchanged.
 */
quarrier_status quarrier_sparse_store_insert(const struct quarrier_sparse_store *store,
                                             struct quarrier_sparse_file *file,
                                             struct quarrier_error **error);

/**
 * Returns the file of this name, which the caller must free. Returns QUARRIER_STATUS_UNKNOWN_FILE if there
 * is none.
 */
quarrier_status quarrier_sparse_store_get(const struct quarrier_sparse_store *store,
                                          const char *id,
                                          struct quarrier_sparse_file **file,
                                          struct quarrier_error **error);

/**
 * Returns whether the store has a file of this name.
 */
bool quarrier_sparse_store_has(const struct quarrier_sparse_store *store, const char *id);

/**
 * Removes the file of this name from the store. Callers that have it may continue to use it.
 */
quarrier_status quarrier_sparse_store_remove(const struct quarrier_sparse_store *store,
                                             const char *id,
                                             struct quarrier_error **error);

/**
 * Returns the number of files.
 */
size_t quarrier_sparse_store_num_files(const struct quarrier_sparse_store *store);

/**
 * Returns the number of bytes held by all files.
 */
uint64_t quarrier_sparse_store_num_bytes(const struct quarrier_sparse_store *store);

/**
 * Evicts bytes of any file, the least recently used first, until at most bytes_max are held, and returns
 * the number of bytes evicted.
 */
uint64_t quarrier_sparse_store_evict(const struct quarrier_sparse_store *store,
                                     uint64_t bytes_max);

/**
 * Calls callback with the name of each file, in order, until it returns a value other than 0. The store
 * may change meanwhile: the names are those at the time of the call.
 */
quarrier_status quarrier_sparse_store_ids(const struct quarrier_sparse_store *store,
                                          quarrier_id_callback callback,
                                          void *context,
                                          struct quarrier_error **error);

/**
 * Serialises all files without their pins, with checksums.
 */
quarrier_status quarrier_sparse_store_to_bytes(const struct quarrier_sparse_store *store,
                                               struct quarrier_bytes **stored,
                                               struct quarrier_error **error);

/**
 * Restores a store from the bytes of quarrier_sparse_store_to_bytes(), with a budget as for
 * quarrier_sparse_store_new().
 */
quarrier_status quarrier_sparse_store_from_bytes(const void *data,
                                                 size_t length,
                                                 uint64_t bytes_max,
                                                 struct quarrier_sparse_store **store,
                                                 struct quarrier_error **error);

/**
 * Creates a stop object without a request. Free it with quarrier_stop_free() after the calls that have
 * it.
 */
quarrier_status quarrier_stop_new(struct quarrier_stop **stop,
                                  struct quarrier_error **error);

/**
 * Requests the calls that have this object to end. A signal handler may call this. The request cannot
 * be revoked.
 */
void quarrier_stop_request(const struct quarrier_stop *stop);

/**
 * Returns whether a stop was requested.
 */
bool quarrier_stop_is_requested(const struct quarrier_stop *stop);

/**
 * Frees a stop object.
 */
void quarrier_stop_free(struct quarrier_stop *stop);

/**
 * Loads the messages of the source that a name refers to: a path, all files of a glob, a URL;
 * compressed or not. options and stop may be NULL. Free the table with quarrier_table_free().
 */
quarrier_status quarrier_table_load(const char *name,
                                    const struct quarrier_table_options *options,
                                    const struct quarrier_stop *stop,
                                    struct quarrier_table **table,
                                    struct quarrier_error **error);

/**
 * Copies an Arrow stream into packed columns. Takes over the stream and releases it, even if the call
 * fails. The buffers of the stream are trusted to match their types.
 */
quarrier_status quarrier_table_import(struct ArrowArrayStream *stream,
                                      const struct quarrier_stop *stop,
                                      struct quarrier_table **table,
                                      struct quarrier_error **error);

/**
 * Exports the rows as an Arrow stream, which the caller must release; the table may be freed before.
 */
quarrier_status quarrier_table_export(const struct quarrier_table *table,
                                      struct ArrowArrayStream *stream,
                                      struct quarrier_error **error);

/**
 * Answers a statement about the table, whose name in it is m: SELECT … FROM m [WHERE …] [ORDER BY …]
 * [LIMIT … [OFFSET …]], or SELECT COUNT(*) FROM m [WHERE …]. The caller must free answer, too.
 */
quarrier_status quarrier_table_query(const struct quarrier_table *table,
                                     const char *sql,
                                     const struct quarrier_stop *stop,
                                     struct quarrier_table **answer,
                                     struct quarrier_error **error);

/**
 * Answers many statements in one pass over the table. answers has room for one table for each
 * statement; the caller must free each of them.
 */
quarrier_status quarrier_table_query_many(const struct quarrier_table *table,
                                          const char *const *sqls,
                                          size_t count,
                                          const struct quarrier_stop *stop,
                                          struct quarrier_table **answers,
                                          struct quarrier_error **error);

/**
 * Returns the number of rows.
 */
uint64_t quarrier_table_rows(const struct quarrier_table *table);

/**
 * Returns the number of columns.
 */
size_t quarrier_table_columns(const struct quarrier_table *table);

/**
 * Returns the memory of the columns in bytes.
 */
size_t quarrier_table_memory_bytes(const struct quarrier_table *table);

/**
 * Returns the number of messages that were rejected during loading, because they do not parse.
 */
uint64_t quarrier_table_rejected(const struct quarrier_table *table);

/**
 * Frees a table.
 */
void quarrier_table_free(struct quarrier_table *table);

/**
 * Returns the version of the library, such as "0.1.0".
 */
const char *quarrier_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* QUARRIER_H */
