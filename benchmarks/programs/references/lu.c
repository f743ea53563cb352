/* SPDX-License-Identifier: Apache-2.0 */
/* Elimination of an n x n matrix in place, without pivoting; the sum of the factors. */
#include <stdint.h>
#include <stdlib.h>

static void fill(double *a, int64_t n) {
    int64_t random = 12345;
    for (int64_t i = 0; i < n * n; i++) {
        random = (random * 1103515245 + 12345) & 2147483647;
        a[i] = (double)random / 2147483648.0;
    }
    for (int64_t i = 0; i < n; i++)
        a[i * n + i] += (double)n;
}

static void eliminate(double *a, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = k + 1; i < n; i++) {
            double factor = a[i * n + k] / a[k * n + k];
            a[i * n + k] = factor;
            for (int64_t j = k + 1; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
}

double work(int64_t n) {
    double *a = calloc((size_t)(n * n), sizeof *a), sum = 0.0;
    fill(a, n);
    eliminate(a, n);
    for (int64_t i = 0; i < n * n; i++)
        sum += a[i];
    free(a);
    return sum;
}
