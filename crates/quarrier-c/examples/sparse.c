/* Fetch parts of a big file: before each read, ask the sparse file which ranges are missing and fetch those.
 * Here the "server" is an array.
 *
 *     cc sparse.c $(pkg-config --cflags --libs quarrier)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quarrier.h>

static const char server[] = "II*\0 the rest of a very large TIFF file, of which few bytes are wanted";

/* Prints the error, and exits. */
static void check(quarrier_status status, quarrier_error *error) {
    if (status != QUARRIER_STATUS_OK) {
        fprintf(stderr, "%s\n", quarrier_error_message(error));
        quarrier_error_free(error);
        exit(1);
    }
}

/* Reads a range, and first fetches its missing parts. */
static void read_range(quarrier_sparse_file *file, uint64_t offset, char *buffer, size_t length) {
    quarrier_error *error = NULL;
    quarrier_span missing[8];
    size_t count = 0;
    check(quarrier_sparse_file_need(file, offset, length, 0, missing, 8, &count, &error), error);
    for (size_t i = 0; i < count; i++) {
        printf("fetch %" PRIu64 " bytes at %" PRIu64 "\n", missing[i].length, missing[i].offset);
        check(quarrier_sparse_file_write(file, missing[i].offset, server + missing[i].offset,
                                         (size_t)missing[i].length, NULL, &error),
              error);
    }
    check(quarrier_sparse_file_read(file, offset, buffer, length, &error), error);
}

int main(void) {
    quarrier_error *error = NULL;
    quarrier_sparse_file *file = NULL;
    quarrier_sparse_options options = {.struct_bytes = sizeof options};
    options.has_length = true;
    options.length = sizeof server - 1;
    check(quarrier_sparse_file_new("https://example.org/big.tif", &options, &file, &error), error);

    char buffer[16];
    read_range(file, 0, buffer, 4);
    read_range(file, 9, buffer, 4);
    read_range(file, 2, buffer, 10);
    printf("held: %" PRIu64 " bytes in %zu block\n", quarrier_sparse_file_num_bytes(file),
           quarrier_sparse_file_num_blocks(file));

    /* Missing bytes cannot be read, and the error says which range to fetch. */
    quarrier_status status = quarrier_sparse_file_read(file, 10, buffer, 8, &error);
    quarrier_span missing = {0, 0};
    if (status == QUARRIER_STATUS_NOT_HELD && quarrier_error_span(error, &missing)) {
        printf("missing: %" PRIu64 " bytes at %" PRIu64 "\n", missing.length, missing.offset);
    }
    quarrier_error_free(error);
    quarrier_sparse_file_free(file);
    return 0;
}

/* Prints:
 * fetch 4 bytes at 0
 * fetch 4 bytes at 9
 * fetch 5 bytes at 4
 * held: 13 bytes in 1 block
 * missing: 5 bytes at 13
 */
