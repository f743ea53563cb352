/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of all elements of an array up to each, in the order of docs/parallel.md. */
#include <stdint.h>
#include <stdlib.h>

enum { BLOCK = 256 };

static double *scan(const double *restrict x, int64_t n) {
    double *to = malloc((size_t)n * sizeof *to);
    int64_t blocks = (n + BLOCK - 1) / BLOCK;
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t first = b * BLOCK, end = n - first < BLOCK ? n : first + BLOCK;
        double sum = to[first] = x[first];
        for (int64_t i = first + 1; i < end; i++)
            to[i] = sum = sum + x[i];
    }
    if (blocks == 1)
        return to;
    double *last = malloc((size_t)blocks * sizeof *last);
    for (int64_t b = 0; b < blocks; b++)
        last[b] = to[b + 1 < blocks ? b * BLOCK + BLOCK - 1 : n - 1];
    double *before = scan(last, blocks);
#pragma omp parallel for schedule(static)
    for (int64_t b = 1; b < blocks; b++) {
        int64_t first = b * BLOCK, end = n - first < BLOCK ? n : first + BLOCK;
        for (int64_t i = first; i < end; i++)
            to[i] = before[b - 1] + to[i];
    }
    free(before);
    free(last);
    return to;
}

double *work(int64_t n, const double *x) {
    return scan(x, n);
}
