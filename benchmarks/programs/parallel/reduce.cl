/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of the elements of an array, in the order of docs/parallel.md: a level, a block an item. */
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void level(long n, __global const double *restrict x, __global double *restrict to) {
    long block = get_global_id(0), left = n - block * 1024, m = left < 1024 ? left : 1024;
    long rows = m / 16, at = 1;
    x += block * 1024;
    double sum = x[0];
    if (rows) {
        double sums[16];
        for (int a = 0; a < 16; a++)
            sums[a] = x[a];
        for (long row = 1; row < rows; row++)
            for (int a = 0; a < 16; a++)
                sums[a] += x[row * 16 + a];
        for (int step = 8; step; step /= 2)
            for (int a = 0; a < step; a++)
                sums[a] += sums[a + step];
        sum = sums[0];
        at = rows * 16;
    }
    for (; at < m; at++)
        sum += x[at];
    to[block] = sum;
}
