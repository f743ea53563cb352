/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplies two n x n matrices again and again; each product depends on the one before. */
#include <stdint.h>

#define LARGEST 300

static double a[LARGEST * LARGEST], b[LARGEST * LARGEST], c[LARGEST * LARGEST];

static void multiply(int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0.0;
            for (int64_t k = 0; k < n; k++)
                sum = sum + a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
}

double work(int64_t n, int64_t times) {
    int64_t size = n * n;
    for (int64_t i = 0; i < size; i++) {
        a[i] = (double)(i % 13) / 7.0;
        b[i] = (double)(i % 11) / 3.0 - 1.0;
    }
    for (int64_t time = 0; time < times; time++) {
        multiply(n);
        a[0] = c[0] * 0.001;
    }
    double total = 0.0;
    for (int64_t i = 0; i < size; i++)
        total = total + c[i];
    return total;
}
