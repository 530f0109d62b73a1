/* The reference for latency: a pointer chaser in plain C.
 *
 *   chase BYTES small|huge
 *
 * Every line of 64 bytes holds the address of another one, in a single ring through all of them, which
 * Sattolo's shuffle makes. Prints the median time of a load, in seconds.
 */
#include "trials.h"

#include <stdint.h>

#define LINE_BYTES 64
#define LOADS 16384

static uint64_t seed = 42;

static uint64_t next_random(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static double once(void *state) {
    void **at = *(void ***)state;
    for (int i = 0; i < LOADS / 8; i++) {
        at = (void **)*at; at = (void **)*at; at = (void **)*at; at = (void **)*at;
        at = (void **)*at; at = (void **)*at; at = (void **)*at; at = (void **)*at;
    }
    *(void ***)state = at;
    return LOADS;
}

int main(int count, char **words) {
    if (count != 3) {
        fputs("chase BYTES small|huge\n", stderr);
        return 2;
    }
    size_t lines = strtoul(words[1], NULL, 10) / LINE_BYTES;
    char *memory = pages(lines * LINE_BYTES, words[2][0] == 'h');
    for (size_t i = 0; i < lines; i++) *(void **)(memory + i * LINE_BYTES) = NULL;
    size_t *order = malloc(lines * sizeof *order);
    if (!order) {
        perror("malloc");
        return 1;
    }
    for (size_t i = 0; i < lines; i++) order[i] = i;
    for (size_t i = lines - 1; i > 0; i--) {
        size_t j = next_random() % i, swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    for (size_t i = 0; i < lines; i++) {
        *(void **)(memory + i * LINE_BYTES) = memory + order[i] * LINE_BYTES;
    }
    free(order);
    void *at = memory;
    trials(once, &at, 1, 1);
    if ((char *)at < memory || (char *)at >= memory + lines * LINE_BYTES) {
        fputs("chase: left its ring\n", stderr);
        return 1;
    }
    return 0;
}
