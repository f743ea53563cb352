/* SPDX-License-Identifier: Apache-2.0 */
/* The triple nested loop with a multiplicative mix inside, modulo 2^64. TWIN_GLOBALS: see loop.c. */
#include <stdint.h>

#ifdef TWIN_GLOBALS
int64_t x, y, z;
uint64_t sum;
#define BARRIER __asm__ volatile("" ::: "memory")
#else
#define BARRIER
#endif

int64_t work(int64_t nx, int64_t ny, int64_t nz) {
#ifndef TWIN_GLOBALS
    int64_t x, y, z;
    uint64_t sum;
#endif
    sum = 0;
    for (x = 0; x < nx; x++)
        for (y = 0; y < ny; y++)
            for (z = 0; z < nz; z++) {
                sum = sum * 31 + (uint64_t)(x ^ y ^ z);
                BARRIER;
            }
    return (int64_t)sum;
}
