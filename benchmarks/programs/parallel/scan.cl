/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of all elements of an array up to each, in the order of docs/parallel.md: a block an item. */
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void blocks(long n, __global const double *restrict x, __global double *restrict last,
                     __global double *restrict to) {
    long block = get_global_id(0), first = block * 256, end = n - first < 256 ? n : first + 256;
    double sum = to[first] = x[first];
    for (long i = first + 1; i < end; i++)
        to[i] = sum = sum + x[i];
    last[block] = sum;
}

__kernel void combine(long n, __global const double *restrict before, __global double *restrict to) {
    long block = get_global_id(0) + 1, first = block * 256, end = n - first < 256 ? n : first + 256;
    double left = before[block - 1];
    for (long i = first; i < end; i++)
        to[i] = left + to[i];
}
