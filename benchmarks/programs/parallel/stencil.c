/* SPDX-License-Identifier: Apache-2.0 */
/* Relaxation of a grid with its border fixed: the mean of a point and its four neighbours, a row an
   item, from one array to the other and back. */
#include <stdint.h>

static void sweep(int64_t size, const double *restrict from, double *restrict to) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 1; row < size - 1; row++)
        for (int64_t x = 1; x < size - 1; x++) {
            int64_t at = row * size + x;
            to[at] = 0.2 * ((((from[at] + from[at - 1]) + from[at + 1]) + from[at - size]) +
                            from[at + size]);
        }
}

void work(int64_t size, int64_t times, double *a, double *b) {
    for (int64_t done = 0; done < times; done += 2) {
        sweep(size, a, b);
        sweep(size, b, a);
    }
}
