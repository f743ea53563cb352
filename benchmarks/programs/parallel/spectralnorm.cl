/* SPDX-License-Identifier: Apache-2.0 */
/* A product of the matrix 1 / ((i + j) (i + j + 1) / 2 + i + 1) and a vector, a row an item. */
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void item(long n, __global const double *restrict v, __global double *restrict to) {
    long i = get_global_id(0);
    double sum = 0.0;
    for (long j = 0; j < n; j++) {
        long k = i + j;
        sum += v[j] / (double)((k * (k + 1) >> 1) + (i + 1));
    }
    to[i] = sum;
}
