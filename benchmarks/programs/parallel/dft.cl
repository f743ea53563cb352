/* SPDX-License-Identifier: Apache-2.0 */
/* The discrete Fourier transform by its definition, a frequency an item. sin and cos are stand-in
   polynomials of a part of a turn between -1/2 and 1/2. */
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

static double sine(double t) {
    double u = t * 6.283185307179586, s = u * u;
    return u * (1.0 + s * (-0.16666666666666666 + s * (0.008333333333333333 +
           s * (-0.0001984126984126984 + s * (2.7557319223985893e-06 + s * -2.505210838544172e-08)))));
}

static double cosine(double t) {
    double u = t * 6.283185307179586, s = u * u;
    return 1.0 + s * (-0.5 + s * (0.041666666666666664 + s * (-0.001388888888888889 +
           s * (2.48015873015873e-05 + s * -2.755731922398589e-07))));
}

__kernel void item(long n, __global const double *restrict re, __global const double *restrict im,
                   __global double *restrict to_re, __global double *restrict to_im) {
    long k = get_global_id(0);
    double part = (double)k / (double)n, sum_re = 0.0, sum_im = 0.0;
    for (long j = 0; j < n; j++) {
        double turns = part * (double)j, t = turns - floor(turns + 0.5);
        double s = sine(t), c = cosine(t);
        sum_re += re[j] * c + im[j] * s;
        sum_im += im[j] * c - re[j] * s;
    }
    to_re[k] = sum_re;
    to_im[k] = sum_im;
}
