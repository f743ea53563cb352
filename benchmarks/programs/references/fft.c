/* SPDX-License-Identifier: Apache-2.0 */
/* The fast Fourier transform of n points in place, n a power of 2, and its inverse without the
   division: n times the points come back. */
#include <stdint.h>
#include <stdlib.h>

static double sine(double x) {
    double term = x, sum = x;
    for (int64_t k = 1; k < 12; k++) {
        term = -term * x * x / (double)(2 * k * (2 * k + 1));
        sum += term;
    }
    return sum;
}

static void reverse(double *re, double *im, int64_t n) {
    int64_t j = 0;
    for (int64_t i = 1; i < n; i++) {
        int64_t bit = n >> 1;
        while (j & bit) {
            j ^= bit;
            bit >>= 1;
        }
        j ^= bit;
        if (i < j) {
            double x = re[i], y = im[i];
            re[i] = re[j];
            im[i] = im[j];
            re[j] = x;
            im[j] = y;
        }
    }
}

static void transform(double *re, double *im, const double *cosines, const double *sines, int64_t n) {
    reverse(re, im, n);
    for (int64_t half = 1; half < n; half *= 2) {
        int64_t stride = n / (2 * half);
        for (int64_t start = 0; start < n; start += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                double c = cosines[k * stride], s = sines[k * stride];
                int64_t p = start + k, q = start + half + k;
                double x = re[q] * c - im[q] * s, y = re[q] * s + im[q] * c;
                double u = re[p], v = im[p];
                re[p] = u + x;
                im[p] = v + y;
                re[q] = u - x;
                im[q] = v - y;
            }
    }
}

double work(int64_t n) {
    double *re = calloc((size_t)n, sizeof *re), *im = calloc((size_t)n, sizeof *im);
    double *cosines = calloc((size_t)(n >> 1), sizeof *cosines);
    double *sines = calloc((size_t)(n >> 1), sizeof *sines);
    double sum = 0.0;
    for (int64_t i = 0; i < n >> 1; i++) {
        double x = -3.141592653589793 * (double)i / (double)n, s = sine(x);
        cosines[i] = 1.0 - 2.0 * s * s;
        sines[i] = sine(2.0 * x);
    }
    for (int64_t i = 0; i < n; i++)
        re[i] = (double)((i * 7) & 15);
    transform(re, im, cosines, sines, n);
    transform(im, re, cosines, sines, n);
    for (int64_t i = 0; i < n; i++)
        sum += re[i] * (double)(i & 7);
    free(re);
    free(im);
    free(cosines);
    free(sines);
    return sum / (double)n;
}
