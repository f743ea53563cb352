/* SPDX-License-Identifier: Apache-2.0 */
/* Relaxation of a 300 x 300 grid: sweeps from one array to another and back; the sum of the cells. */
#include <stdint.h>
#include <stdlib.h>

static void sweep(const float *from, float *to, int64_t n) {
    for (int64_t y = 1; y < n - 1; y++)
        for (int64_t x = 1; x < n - 1; x++) {
            int64_t at = y * n + x;
            to[at] = 0.25f * (from[at - 1] + from[at + 1] + from[at - n] + from[at + n]);
        }
}

double work(int64_t steps) {
    int64_t n = 300;
    /* The size stays unknown to the compiler, as it is in programs that read it. */
    __asm__ volatile("" : "+r"(n));
    float *a = calloc((size_t)(n * n), sizeof *a), *b = calloc((size_t)(n * n), sizeof *b);
    double sum = 0.0;
    for (int64_t i = 0; i < n * n; i++)
        a[i] = b[i] = (float)(i & 15);
    for (int64_t i = 0; i < steps; i += 2) {
        sweep(a, b, n);
        sweep(b, a, n);
    }
    for (int64_t i = 0; i < n * n; i++)
        sum += a[i];
    free(a);
    free(b);
    return sum;
}
