/* SPDX-License-Identifier: Apache-2.0 */
/* How many numbers from 0 up to 1 are in each bin, by atomic additions, a number an item. */
#include <stdint.h>

void work(int64_t n, double bins, const double *restrict x, int32_t *restrict counts) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        int32_t *bin = &counts[(int64_t)(bins * x[i])];
#pragma omp atomic
        *bin += 1;
    }
}
