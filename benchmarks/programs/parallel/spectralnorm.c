/* SPDX-License-Identifier: Apache-2.0 */
/* A product of the matrix 1 / ((i + j) (i + j + 1) / 2 + i + 1) and a vector, a row an item. */
#include <stdint.h>

void work(int64_t n, const double *restrict v, double *restrict to) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (int64_t j = 0; j < n; j++) {
            int64_t k = i + j;
            sum += v[j] / (double)((k * (k + 1) >> 1) + (i + 1));
        }
        to[i] = sum;
    }
}
