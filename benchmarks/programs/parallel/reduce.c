/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of the elements of an array, in the order of docs/parallel.md. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1024, WIDTH = 16 };

static double block(const double *restrict x, int64_t m) {
    double sums[WIDTH];
    int64_t rows = m / WIDTH, at = 1;
    double sum = x[0];
    if (rows) {
        memcpy(sums, x, sizeof sums);
        for (int64_t row = 1; row < rows; row++)
            for (int64_t a = 0; a < WIDTH; a++)
                sums[a] += x[row * WIDTH + a];
        for (int64_t half = WIDTH / 2; half; half /= 2)
            for (int64_t a = 0; a < half; a++)
                sums[a] += sums[a + half];
        sum = sums[0];
        at = rows * WIDTH;
    }
    for (; at < m; at++)
        sum += x[at];
    return sum;
}

static double *level(const double *x, int64_t n, int64_t blocks) {
    double *to = malloc((size_t)blocks * sizeof *to);
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < blocks; b++)
        to[b] = block(x + b * BLOCK, n - b * BLOCK < BLOCK ? n - b * BLOCK : BLOCK);
    return to;
}

void work(int64_t n, const double *restrict x, double *restrict to) {
    double *below = NULL;
    do {
        int64_t blocks = (n + BLOCK - 1) / BLOCK;
        double *above = level(below ? below : x, n, blocks);
        free(below);
        below = above;
        n = blocks;
    } while (n > 1);
    to[0] = below[0];
    free(below);
}
