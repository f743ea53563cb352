/* SPDX-License-Identifier: Apache-2.0 */
/* The discrete Fourier transform by its definition, a frequency an item. sin and cos are stand-in
   polynomials of a part of a turn between -1/2 and 1/2. */
#include <math.h>
#include <stdint.h>

static inline double sine(double t) {
    double u = t * 6.283185307179586, s = u * u;
    return u * (1.0 + s * (-0.16666666666666666 + s * (0.008333333333333333 +
           s * (-0.0001984126984126984 + s * (2.7557319223985893e-06 + s * -2.505210838544172e-08)))));
}

static inline double cosine(double t) {
    double u = t * 6.283185307179586, s = u * u;
    return 1.0 + s * (-0.5 + s * (0.041666666666666664 + s * (-0.001388888888888889 +
           s * (2.48015873015873e-05 + s * -2.755731922398589e-07))));
}

void work(int64_t n, const double *restrict re, const double *restrict im, double *restrict to_re,
          double *restrict to_im) {
#pragma omp parallel for schedule(static)
    for (int64_t k = 0; k < n; k++) {
        double part = (double)k / (double)n, sum_re = 0.0, sum_im = 0.0;
        for (int64_t j = 0; j < n; j++) {
            double turns = part * (double)j, t = turns - floor(turns + 0.5);
            double s = sine(t), c = cosine(t);
            sum_re += re[j] * c + im[j] * s;
            sum_im += im[j] * c - re[j] * s;
        }
        to_re[k] = sum_re;
        to_im[k] = sum_im;
    }
}
