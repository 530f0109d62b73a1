/* Random operations on a sparse file, alone and in a store, each compared with a model: an array of bytes
 * and one that marks those that are held. model SEED OPERATIONS */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quarrier.h>

enum { BYTES = 700, LONGEST = 60 };

static unsigned char value[BYTES];
static bool held[BYTES];
static uint64_t state;
static unsigned long step;

static uint32_t draw(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % below;
}

#define EXPECT(condition)                                                                            \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            fprintf(stderr, "step %lu, line %d: %s\n", step, __LINE__, #condition);                  \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

/* The true byte of the file at an offset. */
static unsigned char truth(uint64_t offset) { return (unsigned char)(offset * 7 + offset / 13); }

static bool model_has(uint64_t offset, uint64_t length) {
    for (uint64_t at = offset; at < offset + length; at++) {
        if (at >= BYTES || !held[at]) {
            return false;
        }
    }
    return true;
}

/* The runs of held, or missing, bytes of the model within a range. */
static size_t model_runs(uint64_t offset, uint64_t length, bool wanted, quarrier_span *spans) {
    size_t count = 0;
    for (uint64_t at = offset; at < offset + length; at++) {
        if ((at < BYTES && held[at]) != wanted) {
            continue;
        }
        if (count > 0 && spans[count - 1].offset + spans[count - 1].length == at) {
            spans[count - 1].length++;
        } else {
            spans[count].offset = at;
            spans[count].length = 1;
            count++;
        }
    }
    return count;
}

static void compare(const quarrier_span *one, size_t one_count, const quarrier_span *two, size_t two_count) {
    EXPECT(one_count == two_count);
    for (size_t i = 0; i < one_count; i++) {
        EXPECT(one[i].offset == two[i].offset && one[i].length == two[i].length);
    }
}

static void do_write(quarrier_sparse_file *file, uint64_t offset, uint64_t length) {
    unsigned char data[LONGEST];
    uint64_t expected_new = 0;
    uint64_t new_bytes = 0;
    for (uint64_t i = 0; i < length; i++) {
        data[i] = truth(offset + i);
        expected_new += !held[offset + i];
    }
    bool conflicts = false;
    uint64_t wrong = 0;
    if (length > 0 && draw(8) == 0) {
        wrong = draw((uint32_t)length);
        data[wrong] ^= 0x40;
        conflicts = held[offset + wrong];
        if (!conflicts) {
            data[wrong] ^= 0x40;
        }
    }
    quarrier_error *error = NULL;
    quarrier_status status =
        quarrier_sparse_file_write(file, offset, data, (size_t)length, &new_bytes, &error);
    if (conflicts) {
        quarrier_span about;
        uint8_t byte_held = 0;
        uint8_t given = 0;
        EXPECT(status == QUARRIER_STATUS_CONFLICT && quarrier_error_status(error) == status);
        EXPECT(quarrier_error_span(error, &about) && about.offset == offset + wrong);
        EXPECT(quarrier_error_values(error, &byte_held, &given));
        EXPECT(byte_held == truth(offset + wrong) && given == (byte_held ^ 0x40));
        quarrier_error_free(error);
        return;
    }
    EXPECT(status == QUARRIER_STATUS_OK && error == NULL && new_bytes == expected_new);
    for (uint64_t i = 0; i < length; i++) {
        held[offset + i] = true;
        value[offset + i] = data[i];
    }
}

static void do_read(const quarrier_sparse_file *file, uint64_t offset, uint64_t length) {
    unsigned char data[LONGEST];
    quarrier_error *error = NULL;
    quarrier_status status = quarrier_sparse_file_read(file, offset, data, (size_t)length, &error);
    if (model_has(offset, length)) {
        EXPECT(status == QUARRIER_STATUS_OK);
        EXPECT(length == 0 || memcmp(data, value + offset, (size_t)length) == 0);
        return;
    }
    quarrier_span missing;
    quarrier_span expected[LONGEST];
    EXPECT(status == QUARRIER_STATUS_NOT_HELD);
    EXPECT(quarrier_error_span(error, &missing));
    model_runs(offset, length, false, expected);
    compare(&missing, 1, expected, 1);
    EXPECT(strlen(quarrier_error_message(error)) > 20);
    quarrier_error_free(error);
}

static void do_need(const quarrier_sparse_file *file, uint64_t offset, uint64_t length) {
    quarrier_span expected[BYTES];
    quarrier_span given[BYTES];
    size_t count = 0;
    size_t expected_count = model_runs(offset, length, false, expected);
    EXPECT(quarrier_sparse_file_need(file, offset, length, 0, given, 2, &count, NULL) ==
           QUARRIER_STATUS_OK);
    EXPECT(count == expected_count);
    compare(given, count < 2 ? count : 2, expected, count < 2 ? count : 2);
    EXPECT(quarrier_sparse_file_need(file, offset, length, 0, given, BYTES, &count, NULL) ==
           QUARRIER_STATUS_OK);
    compare(given, count, expected, expected_count);
    /* Greedy requests cover all missing bytes, begin with a missing byte, and are long enough. */
    uint64_t greedy = 1 + draw(40);
    EXPECT(quarrier_sparse_file_need(file, offset, length, greedy, given, BYTES, &count, NULL) ==
           QUARRIER_STATUS_OK);
    uint64_t end = 0;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        EXPECT(given[i].length >= greedy && (i == 0 || given[i].offset > end));
        EXPECT(at < expected_count && given[i].offset == expected[at].offset);
        end = given[i].offset + given[i].length;
        while (at < expected_count && expected[at].offset + expected[at].length <= end) {
            at++;
        }
    }
    EXPECT(at == expected_count);
}

static void do_erase(quarrier_sparse_file *file, uint64_t offset, uint64_t length) {
    uint64_t expected = 0;
    uint64_t erased = 0;
    for (uint64_t at = offset; at < offset + length; at++) {
        expected += held[at];
        held[at] = false;
    }
    EXPECT(quarrier_sparse_file_erase(file, offset, length, &erased, NULL) == QUARRIER_STATUS_OK);
    EXPECT(erased == expected);
}

static void check_all(const quarrier_sparse_file *file) {
    quarrier_span expected[BYTES];
    quarrier_span given[BYTES];
    size_t count = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < BYTES; i++) {
        bytes += held[i];
    }
    size_t expected_count = model_runs(0, BYTES, true, expected);
    EXPECT(quarrier_sparse_file_blocks(file, given, BYTES, &count, NULL) == QUARRIER_STATUS_OK);
    compare(given, count, expected, expected_count);
    EXPECT(quarrier_sparse_file_num_blocks(file) == expected_count);
    EXPECT(quarrier_sparse_file_num_bytes(file) == bytes);
}

/* The same file, restored from its bytes. */
static quarrier_sparse_file *stored(quarrier_sparse_file *file) {
    quarrier_bytes *bytes = NULL;
    quarrier_sparse_file *again = NULL;
    quarrier_error *error = NULL;
    EXPECT(quarrier_sparse_file_to_bytes(file, &bytes, NULL) == QUARRIER_STATUS_OK);
    size_t length = quarrier_bytes_length(bytes);
    EXPECT(quarrier_sparse_file_from_bytes(quarrier_bytes_data(bytes), length - 1, &again, &error) ==
           QUARRIER_STATUS_CORRUPT);
    quarrier_error_free(error);
    EXPECT(quarrier_sparse_file_from_bytes(quarrier_bytes_data(bytes), length, &again, NULL) ==
           QUARRIER_STATUS_OK);
    quarrier_bytes_free(bytes);
    return again;
}

int main(int argc, char **argv) {
    state = 0x9e3779b97f4a7c15u ^ (argc > 1 ? strtoull(argv[1], NULL, 10) : 1);
    unsigned long operations = argc > 2 ? strtoul(argv[2], NULL, 10) : 10000;
    quarrier_sparse_file *file = NULL;
    quarrier_sparse_store *store = NULL;
    bool is_own = true;
    EXPECT(quarrier_sparse_file_new("model", NULL, &file, NULL) == QUARRIER_STATUS_OK);
    EXPECT(quarrier_sparse_store_new(QUARRIER_UNKNOWN, &store, NULL) == QUARRIER_STATUS_OK);
    for (step = 0; step < operations; step++) {
        uint64_t offset = draw(BYTES - LONGEST);
        uint64_t length = draw(LONGEST);
        switch (draw(16)) {
        case 0: case 1: case 2: case 3: do_write(file, offset, length); break;
        case 4: case 5: case 6: do_erase(file, offset, length / 3); break;
        case 7: case 8: case 9: do_read(file, offset, length); break;
        case 10: case 11: do_need(file, offset, length); break;
        case 12: case 13:
            EXPECT(quarrier_sparse_file_has(file, offset, length) == model_has(offset, length));
            break;
        case 14: check_all(file); break;
        default:
            if (draw(50) == 0) {
                quarrier_sparse_file *again = stored(file);
                quarrier_sparse_file_free(file);
                file = again;
                is_own = true;
            } else if (draw(50) == 0 && is_own && !quarrier_sparse_store_has(store, "model")) {
                /* From here on it is a file of the store, even after its removal. */
                is_own = false;
                EXPECT(quarrier_sparse_store_insert(store, file, NULL) == QUARRIER_STATUS_OK);
                EXPECT(quarrier_sparse_store_insert(store, file, NULL) == QUARRIER_STATUS_ARGUMENT);
                quarrier_sparse_file_free(file);
                EXPECT(quarrier_sparse_store_get(store, "model", &file, NULL) == QUARRIER_STATUS_OK);
            } else if (draw(50) == 0 && quarrier_sparse_store_has(store, "model")) {
                EXPECT(quarrier_sparse_store_remove(store, "model", NULL) == QUARRIER_STATUS_OK);
                EXPECT(quarrier_sparse_store_get(store, "model", &file, NULL) ==
                       QUARRIER_STATUS_UNKNOWN_FILE);
            }
        }
    }
    check_all(file);
    quarrier_sparse_file_free(file);
    quarrier_sparse_store_free(store);
    return 0;
}
