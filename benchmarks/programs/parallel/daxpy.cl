/* SPDX-License-Identifier: Apache-2.0 */
/* z = a x + y, an element an item. */
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void item(long n, double a, __global const double *restrict x,
                   __global const double *restrict y, __global double *restrict z) {
    long i = get_global_id(0);
    z[i] = a * x[i] + y[i];
}
