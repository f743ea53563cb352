/* SPDX-License-Identifier: Apache-2.0 */
/* z = a x + y, an element an item. */
#include <stdint.h>

void work(int64_t n, double a, const double *restrict x, const double *restrict y, double *restrict z) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        z[i] = a * x[i] + y[i];
}
