/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest of some centres of clusters, a point of the plane an item. */
#include <math.h>
#include <stdint.h>

void work(int64_t n, int64_t clusters, const double *restrict x, const double *restrict y,
          const double *restrict cx, const double *restrict cy, int32_t *restrict labels) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        double px = x[i], py = y[i], least = INFINITY;
        int32_t label = 0;
        for (int64_t c = 0; c < clusters; c++) {
            double dx = px - cx[c], dy = py - cy[c], squared = dx * dx + dy * dy;
            if (squared < least) {
                least = squared;
                label = (int32_t)c;
            }
        }
        labels[i] = label;
    }
}
