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
 * The same holds for memory: during a call nobody else writes to bytes and text that the call reads, or uses
 * room that it fills, neither a thread of this process nor another process that shares it.
 *
 * fork(). A child may go on with sparse files, stores and tables if no other thread was inside the library
 * at the fork. Remote sources have a thread, which the child does not: open them after the fork.
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

/* The structures by which columns go from library to library: the Arrow C data and C stream interfaces,
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
     * It succeeded.
     */
    QUARRIER_STATUS_OK = 0,
    /**
     * A callback or a quarrier_stop ended it; everything handed out before is right.
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
     * A name stands for no file, and for nothing that a server has.
     */
    QUARRIER_STATUS_NOT_FOUND = 11,
    /**
     * The system refused; see quarrier_error_errno().
     */
    QUARRIER_STATUS_SYSTEM = 12,
    /**
     * A name or source stands for something that cannot be used in this way.
     */
    QUARRIER_STATUS_UNUSABLE = 13,
    /**
     * A remote source failed.
     */
    QUARRIER_STATUS_REMOTE = 14,
    /**
     * A pattern, a set of patterns or an engine cannot search.
     */
    QUARRIER_STATUS_PATTERN = 15,
    /**
     * A condition or statement is wrong, names a column that is not there, or has no value for a row.
     */
    QUARRIER_STATUS_QUERY = 16,
    /**
     * A source is damaged, or has not the content that it was opened for.
     */
    QUARRIER_STATUS_DATA = 17,
    /**
     * There is not as much memory as the call needs.
     */
    QUARRIER_STATUS_MEMORY = 18,
    /**
     * The object is used in a child that was forked after it was made.
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
 * Plans the requests of one reader, from its reads so far: more than is asked for, where that saves a
 * request.
 */
typedef struct quarrier_read_ahead quarrier_read_ahead;

/**
 * The account of a search, a carving or a filter.
 */
typedef struct quarrier_report quarrier_report;

/**
 * Patterns, and how they are searched for.
 */
typedef struct quarrier_search quarrier_search;

/**
 * Zeroed memory that this process can share with others, on huge pages where the system has some. A forked
 * child has the same memory; another process gets it by the descriptor.
 */
typedef struct quarrier_shared_region quarrier_shared_region;

/**
 * Something with bytes at offsets. Many threads may read it at a time.
 */
typedef struct quarrier_source quarrier_source;

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
 * Ends calls that it was given to, from any thread. Calls end soon after it is requested, not at once.
 */
typedef struct quarrier_stop quarrier_stop;

/**
 * Messages as columns, or the rows of an answer. Nothing changes it.
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
     * The folder that files are written into, new or empty; NULL: nothing is written.
     */
    const char *folder;
    /**
     * Types, such as "jpg,png", or NULL: all.
     */
    const char *types;
    /**
     * A file with signatures of more types, or NULL.
     */
    const char *signatures;
    /**
     * Only the bytes from here on …
     */
    uint64_t range_start;
    /**
     * … to before here; 0: to the end.
     */
    uint64_t range_end;
    /**
     * No file is longer; 0: any length.
     */
    uint64_t file_bytes_max;
    /**
     * The most memory for files that are put together; 0: 1 GiB.
     */
    uint64_t memory_bytes_max;
    /**
     * Threads; 0: as many as there are CPUs.
     */
    size_t workers;
    /**
     * Whether the folder has what an earlier run left, which goes on.
     */
    uint8_t resume;
    /**
     * Whether only files that are valid are kept.
     */
    uint8_t valid_only;
    /**
     * Whether files inside archives are carved, too.
     */
    uint8_t embedded;
    /**
     * Whether only what file systems say is free is carved.
     */
    uint8_t unallocated;
    /**
     * Whether fragments are looked for at length.
     */
    uint8_t thorough;
    /**
     * Whether rows go without a SHA-256, for which all bytes are read. A folder's report always has it.
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
     * In bytes.
     */
    uint64_t length;
} quarrier_span;

/**
 * A file that was carved. All pointers live as long as the callback that gets it.
 */
typedef struct quarrier_carved_file {
    /**
     * The name of the source.
     */
    const char *source;
    /**
     * Its type, such as "jpg".
     */
    const char *kind;
    /**
     * The offset of its first byte in the source; inside an archive, that of the archive.
     */
    uint64_t offset;
    /**
     * Its length in bytes.
     */
    uint64_t length;
    /**
     * Where its bytes lie in the source; none inside an archive.
     */
    const struct quarrier_span *extents;
    /**
     * How many ranges these are.
     */
    size_t extent_count;
    /**
     * "valid", "partial" or "header".
     */
    const char *status;
    /**
     * Why it is not valid; empty where it is.
     */
    const char *reason;
    /**
     * In hexadecimal, or empty.
     */
    const char *sha256;
    /**
     * Where it was written, from the folder on; without a folder, where it would be.
     */
    const char *path;
    /**
     * The way to it from the outermost archive, or NULL.
     */
    const char *container;
} quarrier_carved_file;

/**
 * Takes a file that was carved. 0 goes on, anything else ends the carving. Files come one at a time, from
 * any thread, about in the order of their offsets. It must not throw, nor leave by longjmp().
 */
typedef int (*quarrier_carved_callback)(const struct quarrier_carved_file *file, void *context);

/**
 * How messages are filtered. `quarrier_filter_options options = {.struct_bytes = sizeof options};` sets every field to its
 * default.
 */
typedef struct quarrier_filter_options {
    /**
     * sizeof(quarrier_filter_options).
     */
    size_t struct_bytes;
    /**
     * "ndjson", "fix", "nvfix", "csv" or "xml"; NULL: each source tells.
     */
    const char *format;
    /**
     * The columns of an Arrow stream, such as "side,qty", or NULL: those of the first messages.
     */
    const char *columns;
    /**
     * A file for the messages that do not parse, one JSON object a line, or NULL.
     */
    const char *rejects;
    /**
     * The run ends with so many messages; 0: any number.
     */
    uint64_t matches_max;
    /**
     * Threads; 0: as many as there are CPUs.
     */
    size_t workers;
} quarrier_filter_options;

/**
 * A message. All pointers live as long as the callback that gets it.
 */
typedef struct quarrier_message {
    /**
     * The name of the source.
     */
    const char *source;
    /**
     * Where it starts, after decompression.
     */
    uint64_t offset;
    /**
     * Its bytes, without the end of the line.
     */
    const void *data;
    /**
     * How many these are.
     */
    size_t length;
} quarrier_message;

/**
 * Takes a message. 0 goes on, anything else ends the run. Messages come in the order of their source, one at
 * a time, from any thread. It must not throw, nor leave by longjmp().
 */
typedef int (*quarrier_message_callback)(const struct quarrier_message *message, void *context);

/**
 * How patterns are searched for. `quarrier_search_options options = {.struct_bytes = sizeof options};` sets every field to
 * its default.
 */
typedef struct quarrier_search_options {
    /**
     * sizeof(quarrier_search_options).
     */
    size_t struct_bytes;
    /**
     * Only findings at multiples of this; 0: anywhere.
     */
    uint64_t aligned;
    /**
     * The search ends with so many findings; 0: any number.
     */
    uint64_t findings_max;
    /**
     * Only the bytes from here on …
     */
    uint64_t range_start;
    /**
     * … to before here; 0: to the end.
     */
    uint64_t range_end;
    /**
     * The longest match of a regex in bytes; 0: 64 KiB. A longer one is an error.
     */
    size_t regex_length_max;
    /**
     * Threads; 0: as many as there are CPUs.
     */
    size_t workers;
    /**
     * The engine for literals and hex patterns, or NULL: the best for them.
     */
    const char *engine;
    /**
     * "cpu", "gpu", "gpu:1", "auto" or "all"; NULL: "cpu".
     */
    const char *device;
    /**
     * Code pages in which literals are searched for too, such as "windows-1251,koi8-r", or NULL.
     */
    const char *encodings;
    /**
     * Built-in scanners, such as "email,iban", or NULL. Their findings follow the patterns in number.
     */
    const char *features;
    /**
     * Whether upper and lower case are the same.
     */
    uint8_t ignore_case;
    /**
     * Whether literals are searched for as UTF-16LE, too.
     */
    uint8_t utf16;
    /**
     * Whether literals are searched for as UTF-16BE, too.
     */
    uint8_t utf16be;
    /**
     * Whether literals are searched for under XOR with one byte, too.
     */
    uint8_t xored;
    /**
     * Whether literals are searched for within base64, too.
     */
    uint8_t base64;
    /**
     * Whether only whole words count.
     */
    uint8_t word;
} quarrier_search_options;

/**
 * A finding. All pointers live as long as the callback that gets it.
 */
typedef struct quarrier_finding {
    /**
     * The name of the source.
     */
    const char *source;
    /**
     * The offset of its first byte in the source.
     */
    uint64_t offset;
    /**
     * Its length in bytes.
     */
    uint64_t length;
    /**
     * Which pattern, by the order in which they were added, from 0.
     */
    size_t pattern;
    /**
     * The name of the pattern, or the pattern as it was written.
     */
    const char *pattern_name;
    /**
     * The bytes found, at most 4,096 of them.
     */
    const void *found;
    /**
     * How many these are.
     */
    size_t found_length;
} quarrier_finding;

/**
 * Takes a finding. 0 goes on, anything else ends the search. Findings come in the order of their offsets,
 * one at a time, from any thread. It must not throw, nor leave by longjmp().
 */
typedef int (*quarrier_finding_callback)(const struct quarrier_finding *finding, void *context);

/**
 * How sources are opened. `quarrier_open_options options = {.struct_bytes = sizeof options};` sets every field to its
 * default.
 */
typedef struct quarrier_open_options {
    /**
     * sizeof(quarrier_open_options).
     */
    size_t struct_bytes;
    /**
     * The folder in which fetched bytes are kept, for later runs and other processes, or NULL: none.
     */
    const char *cache;
    /**
     * The most bytes in that folder; 0: 10 GiB.
     */
    uint64_t cache_bytes_max;
    /**
     * The most bytes of remote sources that are held in memory; 0: a default.
     */
    uint64_t memory_bytes_max;
    /**
     * The most requests under way at once; 0: a default.
     */
    size_t requests_max;
    /**
     * Whether local files are read past the page cache (O_DIRECT).
     */
    uint8_t direct;
} quarrier_open_options;

/**
 * The cost of a remote source's reads so far.
 * `quarrier_remote_counters counters = {.struct_bytes = sizeof counters};` before it is filled.
 */
typedef struct quarrier_remote_counters {
    /**
     * sizeof(quarrier_remote_counters).
     */
    size_t struct_bytes;
    /**
     * Requests that were sent.
     */
    uint64_t requests;
    /**
     * Bytes that came.
     */
    uint64_t bytes_fetched;
    /**
     * Bytes that were asked for.
     */
    uint64_t bytes_asked;
    /**
     * Bytes that the cache folder had.
     */
    uint64_t bytes_from_disk;
    /**
     * Requests that were sent again.
     */
    uint64_t retries;
} quarrier_remote_counters;

/**
 * The cost of requests, and the limits on them. quarrier_cost_model_default() fills it.
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
 * The calls that a file has had since it was made.
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

/**
 * How messages are loaded. `quarrier_table_options options = {.struct_bytes = sizeof options};` sets every field to its
 * default.
 */
typedef struct quarrier_table_options {
    /**
     * sizeof(quarrier_table_options).
     */
    size_t struct_bytes;
    /**
     * "ndjson", "fix", "nvfix", "csv", "xml" or "arrow"; NULL: each source tells.
     */
    const char *format;
    /**
     * The path of a QuickFIX data dictionary, or NULL.
     */
    const char *dictionary;
    /**
     * Threads; 0: as many as there are CPUs.
     */
    size_t workers;
    /**
     * Whether the column _message has each message as it stands in the source.
     */
    uint8_t keep_bytes;
} quarrier_table_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Recovers files from what a name stands for: a path, an image, a URL. options, stop, callback and report
 * may be NULL. QUARRIER_STATUS_STOPPED where the callback or stop ended it: report is there then, too, and a
 * folder can be resumed.
 */
quarrier_status quarrier_carve(const char *name,
                               const struct quarrier_carve_options *options,
                               const struct quarrier_stop *stop,
                               quarrier_carved_callback callback,
                               void *context,
                               struct quarrier_report **report,
                               struct quarrier_error **error);

/**
 * Recovers files from an open source; as quarrier_carve().
 */
quarrier_status quarrier_carve_source(const struct quarrier_source *source,
                                      const struct quarrier_carve_options *options,
                                      const struct quarrier_stop *stop,
                                      quarrier_carved_callback callback,
                                      void *context,
                                      struct quarrier_report **report,
                                      struct quarrier_error **error);

/**
 * Gives the kind of the error.
 */
quarrier_status quarrier_error_status(const struct quarrier_error *error);

/**
 * Gives the message: the failure, its place and a remedy, in one line. It lives as long as the error.
 */
const char *quarrier_error_message(const struct quarrier_error *error);

/**
 * The range that the error is about: missing, pinned, or beyond the end; of a conflict the byte that
 * differs. False where it is about none.
 */
bool quarrier_error_span(const struct quarrier_error *error,
                         struct quarrier_span *span);

/**
 * Gives the value of the byte as held and as given, if the error is a conflict; false for other errors.
 */
bool quarrier_error_values(const struct quarrier_error *error,
                           uint8_t *held,
                           uint8_t *given);

/**
 * The error number (errno) where the system refused, else 0.
 */
int32_t quarrier_error_errno(const struct quarrier_error *error);

/**
 * Frees an error.
 */
void quarrier_error_free(struct quarrier_error *error);

/**
 * Calls back with the messages of what a name stands for, for which an SQL-92 condition is true, as they
 * stand there. Without a callback they are counted. options, stop and report may be NULL.
 * QUARRIER_STATUS_STOPPED where the callback or stop ended it; report is there then, too.
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
 * As quarrier_filter(), but gives the messages as rows: stream, which the caller releases, gets an Arrow
 * stream of them. They are all in memory.
 */
quarrier_status quarrier_filter_stream(const char *name,
                                       const char *condition,
                                       const struct quarrier_filter_options *options,
                                       const struct quarrier_stop *stop,
                                       struct ArrowArrayStream *stream,
                                       struct quarrier_report **report,
                                       struct quarrier_error **error);

/**
 * Bytes of the sources that were worked on.
 */
uint64_t quarrier_report_bytes(const struct quarrier_report *report);

/**
 * Findings, files or messages: what the callback was called with, or was counted.
 */
uint64_t quarrier_report_rows(const struct quarrier_report *report);

/**
 * Messages that were left out because they do not parse.
 */
uint64_t quarrier_report_rejected(const struct quarrier_report *report);

/**
 * The time it took.
 */
double quarrier_report_seconds(const struct quarrier_report *report);

/**
 * The range number index, from 0, that could not be read: its source, which lives as long as the report, and
 * the range. False where there are no more. No row is about such bytes.
 */
bool quarrier_report_unreadable(const struct quarrier_report *report,
                                size_t index,
                                const char **source,
                                struct quarrier_span *span);

/**
 * Frees a report.
 */
void quarrier_report_free(struct quarrier_report *report);

/**
 * Makes a search without patterns. options may be NULL. Free it with quarrier_search_free().
 */
quarrier_status quarrier_search_new(const struct quarrier_search_options *options,
                                    struct quarrier_search **search,
                                    struct quarrier_error **error);

/**
 * Frees a search.
 */
void quarrier_search_free(struct quarrier_search *search);

/**
 * Adds the bytes of a text. name may be NULL: the pattern itself names it.
 */
quarrier_status quarrier_search_add_text(struct quarrier_search *search,
                                         const char *pattern,
                                         const char *name,
                                         struct quarrier_error **error);

/**
 * Adds any bytes. name may be NULL.
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
 * Searches what a name stands for: a path, a folder, a glob, an image, a URL. callback, stop and report may
 * be NULL; without a callback the findings are counted. QUARRIER_STATUS_STOPPED where the callback or stop
 * ended it; report is there then, too.
 */
quarrier_status quarrier_search_run(const struct quarrier_search *search,
                                    const char *name,
                                    const struct quarrier_stop *stop,
                                    quarrier_finding_callback callback,
                                    void *context,
                                    struct quarrier_report **report,
                                    struct quarrier_error **error);

/**
 * Searches an open source; as quarrier_search_run().
 */
quarrier_status quarrier_search_run_source(const struct quarrier_search *search,
                                           const struct quarrier_source *source,
                                           const struct quarrier_stop *stop,
                                           quarrier_finding_callback callback,
                                           void *context,
                                           struct quarrier_report **report,
                                           struct quarrier_error **error);

/**
 * Makes a region. Free it with quarrier_shared_region_free().
 */
quarrier_status quarrier_shared_region_new(size_t length,
                                           struct quarrier_shared_region **region,
                                           struct quarrier_error **error);

/**
 * Makes a region of the memory behind a descriptor, which another process handed over; it is duplicated.
 * Nobody may make its file shorter.
 */
quarrier_status quarrier_shared_region_from_fd(int32_t fd,
                                               size_t length,
                                               struct quarrier_shared_region **region,
                                               struct quarrier_error **error);

/**
 * The memory. It lives as long as the region, and any thread may write to it.
 */
void *quarrier_shared_region_data(const struct quarrier_shared_region *region);

/**
 * Its length in bytes.
 */
size_t quarrier_shared_region_length(const struct quarrier_shared_region *region);

/**
 * Its descriptor, which stays the region's; -1 for NULL.
 */
int32_t quarrier_shared_region_fd(const struct quarrier_shared_region *region);

/**
 * Frees a region; other processes keep theirs.
 */
void quarrier_shared_region_free(struct quarrier_shared_region *region);

/**
 * Opens a path or a URL: a file, a device, an image of any known format, or a remote object. Nothing but the
 * ranges that are read is fetched. Free it with quarrier_source_free(). options may be NULL.
 *
 * QUARRIER_STATUS_UNUSABLE for what can only be read in order, such as a pipe.
 */
quarrier_status quarrier_source_open(const char *name,
                                     const struct quarrier_open_options *options,
                                     struct quarrier_source **source,
                                     struct quarrier_error **error);

/**
 * Makes a source of bytes in memory, which stay the caller's, and have to stay until the source is freed.
 * Other threads may change them meanwhile.
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
 * The path or URL, without the secrets in it. It lives as long as the source.
 */
const char *quarrier_source_name(const struct quarrier_source *source);

/**
 * The length in bytes when it was opened.
 */
uint64_t quarrier_source_length(const struct quarrier_source *source);

/**
 * Reads at offset until buffer is full or the source ends; read gets how many bytes that were.
 */
quarrier_status quarrier_source_read(const struct quarrier_source *source,
                                     uint64_t offset,
                                     void *buffer,
                                     size_t length,
                                     size_t *read,
                                     struct quarrier_error **error);

/**
 * Reads many ranges, one behind the other, into buffer, which has length bytes: as many as the ranges. Of a
 * remote source, the missing bytes of all ranges are fetched first: ranges that are close together by one request,
 * and requests side by side. QUARRIER_STATUS_BEYOND_LENGTH where a range passes the end.
 */
quarrier_status quarrier_source_read_many(const struct quarrier_source *source,
                                          const struct quarrier_span *spans,
                                          size_t span_count,
                                          void *buffer,
                                          size_t length,
                                          struct quarrier_error **error);

/**
 * Gives the cost of a remote source's reads so far; zeros for a local one.
 */
quarrier_status quarrier_source_counters(const struct quarrier_source *source,
                                         struct quarrier_remote_counters *counters,
                                         struct quarrier_error **error);

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
 * Gives the cheapest requests for the missing bytes of many ranges, which may overlap and come in any order.
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
 * Sets the length of the file in bytes. QUARRIER_STATUS_BEYOND_LENGTH if the file holds a byte beyond it.
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
 * Counts the calls that the file has had so far.
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
 * Makes one that is not requested. Free it with quarrier_stop_free() after the calls that have it.
 */
quarrier_status quarrier_stop_new(struct quarrier_stop **stop, struct quarrier_error **error);

/**
 * Asks the calls that have it to end. A signal handler may do that. It cannot be taken back.
 */
void quarrier_stop_request(const struct quarrier_stop *stop);

/**
 * Whether it was requested.
 */
bool quarrier_stop_is_requested(const struct quarrier_stop *stop);

/**
 * Frees one.
 */
void quarrier_stop_free(struct quarrier_stop *stop);

/**
 * Loads the messages of what a name stands for: a path, all files of a glob, a URL; compressed or not.
 * options and stop may be NULL. Free it with quarrier_table_free().
 */
quarrier_status quarrier_table_load(const char *name,
                                    const struct quarrier_table_options *options,
                                    const struct quarrier_stop *stop,
                                    struct quarrier_table **table,
                                    struct quarrier_error **error);

/**
 * Copies an Arrow stream into packed columns. The stream is taken over and released, also where the call
 * fails. It is believed: its buffers have to be what their types say.
 */
quarrier_status quarrier_table_import(struct ArrowArrayStream *stream,
                                      const struct quarrier_stop *stop,
                                      struct quarrier_table **table,
                                      struct quarrier_error **error);

/**
 * Gives the rows as an Arrow stream, which the caller releases; the table may be freed before.
 */
quarrier_status quarrier_table_export(const struct quarrier_table *table,
                                      struct ArrowArrayStream *stream,
                                      struct quarrier_error **error);

/**
 * Answers a statement about the table, which is called m in it: SELECT … FROM m [WHERE …] [ORDER BY …]
 * [LIMIT … [OFFSET …]], or SELECT COUNT(*) FROM m [WHERE …]. answer is to be freed, too.
 */
quarrier_status quarrier_table_query(const struct quarrier_table *table,
                                     const char *sql,
                                     const struct quarrier_stop *stop,
                                     struct quarrier_table **answer,
                                     struct quarrier_error **error);

/**
 * Answers many statements in one pass over the table. answers has room for as many tables as there are
 * statements; each is to be freed.
 */
quarrier_status quarrier_table_query_many(const struct quarrier_table *table,
                                          const char *const *sqls,
                                          size_t count,
                                          const struct quarrier_stop *stop,
                                          struct quarrier_table **answers,
                                          struct quarrier_error **error);

/**
 * How many rows there are.
 */
uint64_t quarrier_table_rows(const struct quarrier_table *table);

/**
 * How many columns there are.
 */
size_t quarrier_table_columns(const struct quarrier_table *table);

/**
 * Bytes of memory that the columns take.
 */
size_t quarrier_table_memory_bytes(const struct quarrier_table *table);

/**
 * How many messages were left out when it was loaded, because they do not parse.
 */
uint64_t quarrier_table_rejected(const struct quarrier_table *table);

/**
 * Frees a table.
 */
void quarrier_table_free(struct quarrier_table *table);

/**
 * The version of the library, as "0.1.0".
 */
const char *quarrier_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* QUARRIER_H */
