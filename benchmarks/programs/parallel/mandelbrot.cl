/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations until points of the plane leave the circle of radius 2, a point an item. */
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void item(long size, long most, __global int *restrict counts) {
    double step = 3.0 / (double)size;
    double cx = -2.0 + step * (double)get_global_id(0), cy = -1.5 + step * (double)get_global_id(1);
    double x = 0.0, y = 0.0, xx = 0.0, yy = 0.0;
    int count = 0;
    while (count < most && xx + yy <= 4.0) {
        y = (2.0 * x) * y + cy;
        x = (xx - yy) + cx;
        xx = x * x;
        yy = y * y;
        count++;
    }
    counts[get_global_id(1) * size + get_global_id(0)] = count;
}
