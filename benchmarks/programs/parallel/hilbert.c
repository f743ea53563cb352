/* SPDX-License-Identifier: Apache-2.0 */
/* The Hilbert matrix, 1 / (row + column + 1), a row an item. */
#include <stdint.h>

void work(int64_t size, double *restrict matrix) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < size; row++)
        for (int64_t column = 0; column < size; column++)
            matrix[row * size + column] = 1.0 / (double)(row + column + 1);
}
