/* SPDX-License-Identifier: Apache-2.0 */
/* Accelerations of the first n of all bodies by all bodies, a body an item. */
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void item(long n, long bodies, __global const double *restrict x,
                   __global const double *restrict y, __global const double *restrict z,
                   __global const double *restrict mass, __global double *restrict ax,
                   __global double *restrict ay, __global double *restrict az) {
    long i = get_global_id(0);
    double xi = x[i], yi = y[i], zi = z[i], sx = 0.0, sy = 0.0, sz = 0.0;
    for (long j = 0; j < bodies; j++) {
        double dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
        double squared = ((dx * dx + dy * dy) + dz * dz) + 0.01;
        double force = mass[j] / (squared * sqrt(squared));
        sx += force * dx;
        sy += force * dy;
        sz += force * dz;
    }
    ax[i] = sx;
    ay[i] = sy;
    az[i] = sz;
}
