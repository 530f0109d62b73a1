/* The reference for memory: copy, scale, add and triad in plain C with OpenMP, ordinary stores.
 *
 *   stream OPERATION BYTES THREADS small|huge
 *
 * BYTES is the size of each array. Bytes count as the loop names them: two arrays for copy and scale,
 * three for add and triad. Build with -O3 -march=native -fopenmp, and
 * -fno-tree-loop-distribute-patterns, or the copy becomes a call that may pass the caches.
 */
#include "trials.h"

#include <omp.h>
#include <string.h>

struct arrays {
    const char *operation;
    double *restrict a, *restrict b, *restrict c;
    long count;
};

static double once(void *state) {
    struct arrays *arrays = state;
    double *restrict a = arrays->a, *restrict b = arrays->b, *restrict c = arrays->c;
    const long count = arrays->count;
    const double factor = 3.0;
    switch (arrays->operation[0]) {
    case 'c':
#pragma omp parallel for schedule(static)
        for (long i = 0; i < count; i++) a[i] = b[i];
        return 16.0 * (double)count;
    case 's':
#pragma omp parallel for schedule(static)
        for (long i = 0; i < count; i++) a[i] = factor * b[i];
        return 16.0 * (double)count;
    case 'a':
#pragma omp parallel for schedule(static)
        for (long i = 0; i < count; i++) a[i] = b[i] + c[i];
        return 24.0 * (double)count;
    default:
#pragma omp parallel for schedule(static)
        for (long i = 0; i < count; i++) a[i] = b[i] + factor * c[i];
        return 24.0 * (double)count;
    }
}

static double expected(char operation, double b, double c) {
    switch (operation) {
    case 'c': return b;
    case 's': return 3.0 * b;
    case 'a': return b + c;
    default: return b + 3.0 * c;
    }
}

int main(int count, char **words) {
    if (count != 5 || !strchr("csat", words[1][0])) {
        fputs("stream OPERATION BYTES THREADS small|huge\n", stderr);
        return 2;
    }
    size_t bytes = strtoul(words[2], NULL, 10);
    int threads = atoi(words[3]), huge = words[4][0] == 'h';
    omp_set_num_threads(threads);
    /* One array after the other in memory, like static arrays, at a distance of a page and a bit. */
    size_t place = bytes + 4096 + 1024;
    char *memory = pages(3 * place, huge);
    struct arrays arrays = {
        words[1], (double *)memory, (double *)(memory + place), (double *)(memory + 2 * place),
        (long)(bytes / sizeof(double)),
    };
#pragma omp parallel for schedule(static)
    for (long i = 0; i < arrays.count; i++) {
        arrays.a[i] = 0.0;
        arrays.b[i] = (double)(i % 1000 + 1);
        arrays.c[i] = (double)(i % 777 + 1);
    }
    trials(once, &arrays, threads, 0);
    for (long i = 0; i < arrays.count; i++) {
        if (arrays.a[i] != expected(words[1][0], arrays.b[i], arrays.c[i])) {
            fprintf(stderr, "stream: number %ld is wrong\n", i);
            return 1;
        }
    }
    return 0;
}
