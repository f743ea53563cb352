/* SPDX-License-Identifier: Apache-2.0 */
/* Shortest paths between all nodes of a graph (Floyd and Warshall); the sum of their lengths. */
#include <stdint.h>
#include <stdlib.h>

static void fill(int32_t *d, int64_t cells) {
    int64_t random = 12345;
    for (int64_t i = 0; i < cells; i++) {
        random = (random * 1103515245 + 12345) & 2147483647;
        d[i] = (int32_t)(1 + ((random >> 8) & 4095));
    }
}

static void shortest(int32_t *d, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < n; i++) {
            int32_t first = d[i * n + k];
            for (int64_t j = 0; j < n; j++) {
                int32_t sum = first + d[k * n + j];
                if (sum < d[i * n + j])
                    d[i * n + j] = sum;
            }
        }
}

int64_t work(int64_t n) {
    int32_t *d = calloc((size_t)(n * n), sizeof *d);
    int64_t sum = 0;
    fill(d, n * n);
    shortest(d, n);
    for (int64_t i = 0; i < n * n; i++)
        sum += d[i];
    free(d);
    return sum;
}
