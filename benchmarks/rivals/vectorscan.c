/* The rival vectorscan, as a whole process: patterns over one file.
 *
 *   vectorscan PATTERNS.hex FILE THREADS    counts every occurrence of every pattern
 *   vectorscan --regexes REGEXES FILE THREADS
 *       counts the regexes, one per line, that match anywhere. (It reports every end of a match, and
 *       other programs do not.) A match of more than 4 KiB may be missed between two pieces.
 *   vectorscan --version
 *
 * PATTERNS.hex holds one pattern per line, as hexadecimal digits. The answer is one JSON
 * object: found, compile_seconds (reading and compiling the patterns), scan_seconds (from
 * then until the last thread ended: mapping, faults and threads are in it).
 *
 * The file is mapped. Reading it into buffers is slower, and five times slower where the
 * offset is not a multiple of a page, as it is once pieces overlap (pread, page cache,
 * Zen 4). Faulting each piece in ahead with MADV_POPULATE_READ gains nothing: the kernel
 * maps the neighbours of a faulting page as it is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <hs/hs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t)1 << 20)
#define THREADS_MAX 64

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("vectorscan: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *grow(void *memory, size_t bytes)
{
    memory = realloc(memory, bytes);
    if (!memory)
        fail("out of memory");
    return memory;
}

/* The patterns, in the arrays for hs_compile_lit_multi. */
struct patterns {
    const char **bytes;
    size_t *lengths;
    unsigned *flags;
    unsigned *ids;
    unsigned count;
    size_t longest_bytes;
};

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static struct patterns read_patterns(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        fail("%s: %s", path, strerror(errno));
    struct patterns p = {0};
    char *line = NULL;
    size_t line_capacity = 0, capacity = 0;
    ssize_t got;
    while ((got = getline(&line, &line_capacity, file)) > 0) {
        size_t digits = (size_t)got - (line[got - 1] == '\n');
        if (digits == 0)
            continue;
        size_t length = digits / 2;
        char *bytes = grow(NULL, length + 1);
        for (size_t i = 0; i < length; i++) {
            int high = digit(line[2 * i]), low = digit(line[2 * i + 1]);
            if (high < 0 || low < 0 || digits % 2)
                fail("%s: line %u is not pairs of hexadecimal digits", path, p.count + 1);
            bytes[i] = (char)(high << 4 | low);
        }
        if (p.count == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            p.bytes = grow(p.bytes, capacity * sizeof *p.bytes);
            p.lengths = grow(p.lengths, capacity * sizeof *p.lengths);
            p.flags = grow(p.flags, capacity * sizeof *p.flags);
            p.ids = grow(p.ids, capacity * sizeof *p.ids);
        }
        p.bytes[p.count] = bytes;
        p.lengths[p.count] = length;
        p.flags[p.count] = 0;
        p.ids[p.count] = p.count;
        p.count++;
        if (length > p.longest_bytes)
            p.longest_bytes = length;
    }
    free(line);
    fclose(file);
    if (p.count == 0)
        fail("%s: holds no pattern", path);
    return p;
}

/* One regex per line, in the same arrays. */
static struct patterns read_regexes(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        fail("%s: %s", path, strerror(errno));
    struct patterns p = {0};
    char *line = NULL;
    size_t line_capacity = 0, capacity = 0;
    ssize_t got;
    while ((got = getline(&line, &line_capacity, file)) > 0) {
        if (line[got - 1] == '\n')
            line[--got] = 0;
        if (got == 0)
            continue;
        if (p.count == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            p.bytes = grow(p.bytes, capacity * sizeof *p.bytes);
            p.flags = grow(p.flags, capacity * sizeof *p.flags);
            p.ids = grow(p.ids, capacity * sizeof *p.ids);
        }
        p.bytes[p.count] = strdup(line);
        if (!p.bytes[p.count])
            fail("out of memory");
        p.flags[p.count] = 0;
        p.ids[p.count] = p.count;
        p.count++;
    }
    free(line);
    fclose(file);
    if (p.count == 0)
        fail("%s: holds no regex", path);
    p.longest_bytes = 4097;
    return p;
}

/* State that all threads share. */
static hs_database_t *database;
static const char *image;
static size_t image_bytes, overlap_bytes;
static atomic_size_t next_offset;
static atomic_ullong found_total;
/* For each regex whether it has matched; NULL for literals. */
static atomic_uchar *has_matched;

struct counter {
    unsigned long long after, found;
};

/* A match belongs to the piece in which it ends: the piece before has counted matches that end in the
 * overlap. */
static int count_match(unsigned id, unsigned long long from, unsigned long long to,
                       unsigned flags, void *context)
{
    struct counter *counter = context;
    (void)from, (void)flags;
    counter->found += to > counter->after;
    if (has_matched)
        atomic_store_explicit(&has_matched[id], 1, memory_order_relaxed);
    return 0;
}

static void *scan_pieces(void *unused)
{
    (void)unused;
    hs_scratch_t *scratch = NULL;
    if (hs_alloc_scratch(database, &scratch) != HS_SUCCESS)
        fail("no scratch");
    unsigned long long found = 0;
    for (;;) {
        size_t own = atomic_fetch_add(&next_offset, PIECE_BYTES);
        if (own >= image_bytes)
            break;
        size_t start = own > overlap_bytes ? own - overlap_bytes : 0;
        size_t end = own + PIECE_BYTES < image_bytes ? own + PIECE_BYTES : image_bytes;
        struct counter counter = {.after = own - start, .found = 0};
        if (hs_scan(database, image + start, (unsigned)(end - start), 0, scratch, count_match,
                    &counter) != HS_SUCCESS)
            fail("the scan failed at offset %zu", start);
        found += counter.found;
    }
    atomic_fetch_add(&found_total, found);
    hs_free_scratch(scratch);
    return NULL;
}

static void map_image(const char *path)
{
    int file = open(path, O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status))
        fail("%s: %s", path, strerror(errno));
    image_bytes = (size_t)status.st_size;
    if (image_bytes == 0)
        fail("%s: is empty", path);
    void *mapped = mmap(NULL, image_bytes, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        fail("%s: %s", path, strerror(errno));
    image = mapped;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        printf("vectorscan %s\n", hs_version());
        return 0;
    }
    int regexes = argc == 5 && !strcmp(argv[1], "--regexes");
    if (regexes)
        argc--, argv++;
    int threads = argc == 4 ? atoi(argv[3]) : 0;
    if (threads < 1 || threads > THREADS_MAX)
        fail("usage: vectorscan [--regexes] PATTERNS FILE THREADS (1 to %d)", THREADS_MAX);
    double start = now();
    struct patterns p = regexes ? read_regexes(argv[1]) : read_patterns(argv[1]);
    hs_compile_error_t *error = NULL;
    hs_error_t status =
        regexes ? hs_compile_multi(p.bytes, p.flags, p.ids, p.count, HS_MODE_BLOCK, NULL, &database,
                                   &error)
                : hs_compile_lit_multi(p.bytes, p.flags, p.ids, p.lengths, p.count, HS_MODE_BLOCK,
                                       NULL, &database, &error);
    if (status != HS_SUCCESS)
        fail("%s: %s", argv[1], error->message);
    double compiled = now();
    if (regexes) {
        has_matched = calloc(p.count, sizeof *has_matched);
        if (!has_matched)
            fail("out of memory");
    }
    overlap_bytes = p.longest_bytes - 1;
    map_image(argv[2]);
    pthread_t thread[THREADS_MAX];
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, scan_pieces, NULL))
            fail("cannot start thread %d", i + 1);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    double end = now();
    if (regexes) {
        unsigned long long matching = 0;
        for (unsigned i = 0; i < p.count; i++)
            matching += has_matched[i];
        atomic_store(&found_total, matching);
    }
    printf("{\"found\":%llu,\"compile_seconds\":%.6f,\"scan_seconds\":%.6f}\n",
           atomic_load(&found_total), compiled - start, end - compiled);
    return 0;
}
