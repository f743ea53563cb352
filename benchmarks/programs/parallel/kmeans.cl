/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest of some centres of clusters, a point of the plane an item. */
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void item(long n, long clusters, __global const double *restrict x,
                   __global const double *restrict y, __global const double *restrict cx,
                   __global const double *restrict cy, __global int *restrict labels) {
    long i = get_global_id(0);
    double px = x[i], py = y[i], least = INFINITY;
    int label = 0;
    for (long c = 0; c < clusters; c++) {
        double dx = px - cx[c], dy = py - cy[c], squared = dx * dx + dy * dy;
        if (squared < least) {
            least = squared;
            label = (int)c;
        }
    }
    labels[i] = label;
}
