/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the iterations of a triple nested loop.
 *
 * Without the barrier a compiler sees that the answer is nx * ny * nz. The empty asm makes it believe
 * that `sum` changes in every iteration, and costs no instruction. TWIN_GLOBALS puts the variables
 * into memory instead, as Skiff's top-level variables are (see docs/benchmarks.md). */
#include <stdint.h>

#ifdef TWIN_GLOBALS
int64_t x, y, z, sum;
#define BARRIER __asm__ volatile("" ::: "memory")
#else
#define BARRIER __asm__ volatile("" : "+r"(sum))
#endif

int64_t work(int64_t nx, int64_t ny, int64_t nz) {
#ifndef TWIN_GLOBALS
    int64_t x, y, z, sum;
#endif
    sum = 0;
    for (x = 0; x < nx; x++)
        for (y = 0; y < ny; y++)
            for (z = 0; z < nz; z++) {
                sum = sum + 1;
                BARRIER;
            }
    return sum;
}
