/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep of the relaxation of a grid with its border fixed: the mean of a point and its four
   neighbours, a point an item. */
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void item(long size, __global const double *restrict from, __global double *restrict to) {
    long at = (get_global_id(1) + 1) * size + get_global_id(0) + 1;
    to[at] = 0.2 * ((((from[at] + from[at - 1]) + from[at + 1]) + from[at - size]) +
                    from[at + size]);
}
