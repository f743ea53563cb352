/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a C twin once: `drive SIZE...` prints the seconds of its work and its result. The seconds are
   of the clock CLOCK. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef CLOCK
#define CLOCK CLOCK_MONOTONIC
#endif

#ifdef FLOAT_RESULT
typedef double result;
#define FORMAT "%.17g"
#else
typedef int64_t result;
#define FORMAT "%" PRId64
#endif

#if SIZES == 1
result work(int64_t);
#define CALL work(size[1])
#elif SIZES == 2
result work(int64_t, int64_t);
#define CALL work(size[1], size[2])
#else
result work(int64_t, int64_t, int64_t);
#define CALL work(size[1], size[2], size[3])
#endif

int main(int argc, char **argv) {
    int64_t size[SIZES + 1];
    if (argc != SIZES + 1) {
        fprintf(stderr, "expected %d sizes, found %d\n", SIZES, argc - 1);
        return 2;
    }
    for (int i = 1; i <= SIZES; i++)
        size[i] = strtoll(argv[i], NULL, 10);
    struct timespec start, end;
    clock_gettime(CLOCK, &start);
    result value = CALL;
    clock_gettime(CLOCK, &end);
    double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9;
    printf("%.9f " FORMAT "\n", seconds, value);
    return 0;
}
