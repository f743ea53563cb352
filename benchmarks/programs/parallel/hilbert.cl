/* SPDX-License-Identifier: Apache-2.0 */
/* The Hilbert matrix, 1 / (row + column + 1), an element an item. */
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void item(long size, __global double *restrict matrix) {
    long column = get_global_id(0), row = get_global_id(1);
    matrix[row * size + column] = 1.0 / (double)(row + column + 1);
}
