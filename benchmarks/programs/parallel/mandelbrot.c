/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations until points of the plane leave the circle of radius 2, a point an item. */
#include <stdint.h>

void work(int64_t size, int64_t most, int32_t *restrict counts) {
    double step = 3.0 / (double)size;
#pragma omp parallel for schedule(dynamic, 1024)
    for (int64_t i = 0; i < size * size; i++) {
        double cx = -2.0 + step * (double)(i % size), cy = -1.5 + step * (double)(i / size);
        double x = 0.0, y = 0.0, xx = 0.0, yy = 0.0;
        int64_t count = 0;
        while (count < most && xx + yy <= 4.0) {
            y = (2.0 * x) * y + cy;
            x = (xx - yy) + cx;
            xx = x * x;
            yy = y * y;
            count++;
        }
        counts[i] = (int32_t)count;
    }
}
