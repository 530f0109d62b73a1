/* A process in which allocations of the library fail, one after the other: a call returns an error, or the
 * process aborts with a message, as docs/c.md says. It never ends in another way, hangs or returns wrong
 * results. memory FAILURES: how many to try of each part. */
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quarrier.h>

/* The allocators of glibc, which those below replace in the whole process. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

/* How many allocations still succeed, and whether all later ones fail or only one. */
static atomic_long allowed;
static bool fails_forever;
static atomic_bool counts;
/* Where libquarrier.so lies. Only its allocations fail, since glibc itself crashes where some of its own do: in
 * pthread_getattr_np(), for one. */
static uintptr_t library_start;
static uintptr_t library_end;

static int find_library(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    (void)context;
    if (strstr(info->dlpi_name, "libquarrier.so") == NULL) {
        return 0;
    }
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
            library_start = start;
            library_end = start + info->dlpi_phdr[i].p_memsz;
        }
    }
    return 1;
}

static bool fails(const void *caller) {
    if (!counts || (uintptr_t)caller < library_start || (uintptr_t)caller >= library_end) {
        return false;
    }
    const long left = atomic_fetch_sub(&allowed, 1);
    return fails_forever ? left <= 0 : left == 0;
}

#define FAILS fails(__builtin_return_address(0))

void *malloc(size_t bytes) { return FAILS ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return FAILS ? NULL : __libc_calloc(count, bytes); }
void *realloc(void *old, size_t bytes) { return FAILS ? NULL : __libc_realloc(old, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) {
    return FAILS ? NULL : __libc_memalign(alignment, bytes);
}
int posix_memalign(void **made, size_t alignment, size_t bytes) {
    void *memory = FAILS ? NULL : __libc_memalign(alignment, bytes);
    if (memory == NULL) {
        return 12; /* ENOMEM */
    }
    *made = memory;
    return 0;
}

/* Exit codes of the child: all calls succeeded, a call returned an error, a result is wrong. */
enum { SUCCEEDED = 0, REFUSED = 10, WRONG = 20 };

/* Ends the child: by the error of a call, if there is one, or because of a wrong result. */
static void require(bool is_right, quarrier_status status, quarrier_error *error) {
    if (status != QUARRIER_STATUS_OK) {
        counts = false;
        bool has_words = error != NULL && strlen(quarrier_error_message(error)) > 5;
        quarrier_error_free(error);
        _exit(has_words ? REFUSED : WRONG);
    }
    if (!is_right) {
        _exit(WRONG);
    }
}

static void sparse_files(void) {
    quarrier_error *error = NULL;
    quarrier_sparse_file *file = NULL;
    quarrier_status status = quarrier_sparse_file_new("a file", NULL, &file, &error);
    require(file != NULL, status, error);
    for (uint64_t at = 0; at < 300; at++) {
        status = quarrier_sparse_file_write(file, 100 * at, "0123456789", 10, NULL, &error);
        require(quarrier_sparse_file_num_bytes(file) == 10 * (at + 1), status, error);
    }
    quarrier_span spans[400];
    size_t count = 0;
    status = quarrier_sparse_file_need(file, 0, 30000, 20, spans, 400, &count, &error);
    require(count == 300 && spans[0].offset == 10, status, error);
    quarrier_bytes *stored = NULL;
    status = quarrier_sparse_file_to_bytes(file, &stored, &error);
    require(stored != NULL, status, error);
    quarrier_sparse_file *again = NULL;
    status = quarrier_sparse_file_from_bytes(quarrier_bytes_data(stored), quarrier_bytes_length(stored),
                                             &again, &error);
    require(quarrier_sparse_file_num_blocks(again) == 300, status, error);
    quarrier_sparse_store *store = NULL;
    status = quarrier_sparse_store_new(100, &store, &error);
    require(store != NULL, status, error);
    status = quarrier_sparse_store_insert(store, again, &error);
    require(quarrier_sparse_store_num_bytes(store) <= 100, status, error);
    uint64_t erased = 0;
    status = quarrier_sparse_file_erase(file, 5, 10000, &erased, &error);
    require(erased == 1000 && quarrier_sparse_file_num_bytes(file) == 2000, status, error);
    quarrier_sparse_store_free(store);
    quarrier_sparse_file_free(again);
    quarrier_bytes_free(stored);
    quarrier_sparse_file_free(file);
}

static int count_one(const quarrier_finding *finding, void *context) {
    (void)finding;
    ++*(unsigned *)context;
    return 0;
}

static void searches(void) {
    static char text[40000];
    memset(text, '.', sizeof text);
    for (size_t at = 1000; at < sizeof text; at += 1000) {
        memcpy(text + at, "needle", 6);
    }
    quarrier_error *error = NULL;
    quarrier_source *source = NULL;
    quarrier_search *search = NULL;
    quarrier_report *report = NULL;
    unsigned found = 0;
    quarrier_status status = quarrier_source_of_memory("memory", text, sizeof text, &source, &error);
    require(source != NULL, status, error);
    status = quarrier_search_new(NULL, &search, &error);
    require(search != NULL, status, error);
    status = quarrier_search_add_text(search, "needle", NULL, &error);
    require(true, status, error);
    status = quarrier_search_add_regex(search, "ab+c", "other", &error);
    require(true, status, error);
    status = quarrier_search_run_source(search, source, NULL, count_one, &found, &report, &error);
    require(found == 39 && quarrier_report_rows(report) == 39, status, error);
    quarrier_report_free(report);
    quarrier_search_free(search);
    quarrier_source_free(source);
}

static int skip_message(const quarrier_message *message, void *context) {
    (void)message;
    ++*(unsigned *)context;
    return 0;
}

/* The parent has written orders.csv. */
static void tables(void) {
    quarrier_error *error = NULL;
    quarrier_table *table = NULL;
    quarrier_table *rows = NULL;
    quarrier_report *report = NULL;
    unsigned kept = 0;
    quarrier_status status =
        quarrier_filter("orders.csv", "qty > 7", NULL, NULL, skip_message, &kept, &report, &error);
    require(kept == 2, status, error);
    status = quarrier_table_load("orders.csv", NULL, NULL, &table, &error);
    require(quarrier_table_rows(table) == 3, status, error);
    status = quarrier_table_query(table, "SELECT side FROM m WHERE qty > 7 ORDER BY qty", NULL, &rows, &error);
    require(quarrier_table_rows(rows) == 2, status, error);
    quarrier_table_free(rows);
    quarrier_table_free(table);
    quarrier_report_free(report);
}

/* Runs a part in a child whose allocation number `number` fails. Returns how the child ended, and the number of
 * allocations that were left. */
static int run(void (*part)(void), long number, bool forever, const char *log, _Atomic long *left) {
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        exit(1);
    }
    if (child == 0) {
        if (freopen(log, "w", stderr) == NULL) {
            _exit(WRONG);
        }
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        alarm(60);
        fails_forever = forever;
        allowed = number;
        counts = true;
        part();
        counts = false;
        *left = allowed;
        _exit(SUCCEEDED);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) {
        perror("waitpid");
        exit(1);
    }
    return status;
}

/* Prints what a child wrote, if `prints`. Returns whether it named the allocation that failed. */
static bool names_allocation(const char *log, bool prints) {
    char line[300];
    bool names = false;
    FILE *file = fopen(log, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        names = names || strstr(line, "memory allocation of ") != NULL;
        if (prints) {
            fputs(line, stderr);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return names;
}

static void try_failures(const char *name, void (*part)(void), long calls, _Atomic long *left) {
    const char *log = "log";
    const long many = 1000000000;
    if (run(part, many, false, log, left) != 0) {
        names_allocation(log, true);
        fprintf(stderr, "%s: it fails with memory enough\n", name);
        exit(1);
    }
    const long total = many - *left;
    long aborted = 0;
    long refused = 0;
    long succeeded = 0;
    for (long call = 0; call < calls && call < total; call++) {
        /* The first half one by one, the rest spread over all. */
        const long number = total <= calls || call < calls / 2 ? call : total * (call - calls / 2) / (calls / 2);
        for (int forever = 0; forever < 2; forever++) {
            const int status = run(part, number, forever != 0, log, left);
            if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
                names_allocation(log, false)) {
                aborted++;
            } else if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED) {
                refused++;
            } else if (WIFEXITED(status) && WEXITSTATUS(status) == SUCCEEDED) {
                succeeded++;
            } else {
                names_allocation(log, true);
                fprintf(stderr, "%s: allocation %ld of %ld failed%s: status %x\n", name, number, total,
                        forever ? " and all later ones" : "", (unsigned)status);
                exit(1);
            }
        }
    }
    printf("%s: %ld allocations; %ld runs aborted, %ld calls returned an error, %ld succeeded\n", name, total,
           aborted, refused, succeeded);
    fflush(stdout);
}

int main(int argc, char **argv) {
    const long calls = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
    _Atomic long *left = mmap(NULL, sizeof *left, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FILE *orders = fopen("orders.csv", "w");
    if (left == MAP_FAILED || orders == NULL || fputs("side,qty\nB,7\nS,8\nB,9\n", orders) == EOF ||
        fclose(orders) != 0) {
        perror("memory");
        return 1;
    }
    if (dl_iterate_phdr(find_library, NULL) == 0 || library_start == 0) {
        fputs("libquarrier.so is not loaded\n", stderr);
        return 1;
    }
    try_failures("sparse files", sparse_files, calls, left);
    try_failures("search", searches, calls, left);
    try_failures("tables", tables, calls, left);
    return 0;
}
