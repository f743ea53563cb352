/* SPDX-License-Identifier: Apache-2.0 */
/* How many numbers from 0 up to 1 are in each bin, by atomic additions, a number an item. */
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void item(long n, double bins, __global const double *restrict x,
                   __global int *restrict counts) {
    atomic_add(&counts[(long)(bins * x[get_global_id(0)])], 1);
}
