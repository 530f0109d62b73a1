/* The reference for the product of matrices: OpenBLAS through its C interface.
 *
 *   OPENBLAS_NUM_THREADS=1 OPENBLAS_CORETYPE=SkylakeX gemm f32|f64 ORDER THREADS
 *
 * Each of THREADS threads computes a product of its own, as the gauge does. Without
 * OPENBLAS_CORETYPE a virtual machine may get the kernels of a much older processor.
 */
#include "trials.h"

#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <string.h>

struct product {
    int is_double, order, threads;
    void **left, **right, **out;
};

static double once(void *state) {
    struct product *product = state;
    int n = product->order;
#pragma omp parallel num_threads(product->threads)
    {
        int t = omp_get_thread_num();
        if (product->is_double) {
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, product->left[t], n,
                        product->right[t], n, 0.0, product->out[t], n);
        } else {
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0f, product->left[t], n,
                        product->right[t], n, 0.0f, product->out[t], n);
        }
    }
    return 2.0 * pow(n, 3) * product->threads;
}

static double get(const struct product *product, const void *matrix, int row, int column) {
    size_t index = (size_t)row * (size_t)product->order + (size_t)column;
    return product->is_double ? ((const double *)matrix)[index] : ((const float *)matrix)[index];
}

static void fill(const struct product *product, void *matrix, uint32_t seed) {
    size_t cells = (size_t)product->order * (size_t)product->order;
    for (size_t i = 0; i < cells; i++) {
        seed = seed * 1664525u + 1013904223u;
        double value = (seed >> 8) / 16777216.0;
        if (product->is_double) ((double *)matrix)[i] = value;
        else ((float *)matrix)[i] = (float)value;
    }
}

int main(int count, char **words) {
    if (count != 4) {
        fputs("gemm f32|f64 ORDER THREADS\n", stderr);
        return 2;
    }
    struct product product = {
        .is_double = strcmp(words[1], "f64") == 0, .order = atoi(words[2]), .threads = atoi(words[3]),
    };
    size_t bytes = (size_t)product.order * (size_t)product.order * (product.is_double ? 8 : 4);
    size_t pointers = (size_t)product.threads * sizeof(void *);
    product.left = malloc(pointers);
    product.right = malloc(pointers);
    product.out = malloc(pointers);
    if (!product.left || !product.right || !product.out) return 1;
    for (int t = 0; t < product.threads; t++) {
        product.left[t] = pages(bytes, 0);
        product.right[t] = pages(bytes, 0);
        product.out[t] = pages(bytes, 0);
        fill(&product, product.left[t], (uint32_t)(2 * t + 1));
        fill(&product, product.right[t], (uint32_t)(2 * t + 2));
    }
    trials(once, &product, product.threads, 0);
    for (int t = 0; t < product.threads; t++) {
        for (int i = 0; i < product.order; i += 37) {
            int j = (i * 31) % product.order;
            double sum = 0.0;
            for (int k = 0; k < product.order; k++) {
                sum += get(&product, product.left[t], i, k) * get(&product, product.right[t], k, j);
            }
            double tolerance = (product.is_double ? 1e-12 : 1e-5) * product.order;
            if (fabs(get(&product, product.out[t], i, j) - sum) > tolerance * sum) {
                fprintf(stderr, "gemm: row %d column %d is wrong\n", i, j);
                return 1;
            }
        }
    }
    return 0;
}
