/* SPDX-License-Identifier: Apache-2.0 */
/* Prices of European calls and puts, an option an item. exp and log are stand-in polynomials, or those of
   the C library where LIBRARY is defined. The normal distribution is formula 26.2.17 of Abramowitz
   and Stegun. */
#include <math.h>
#include <stdint.h>

#ifdef LIBRARY
#define exp16 exp
#define log9 log
#else
static inline double exp16(double x) {
    double y = x * 0.0625;
    double p = 1.0 + y * (1.0 + y * (0.5 + y * (0.16666666666666666 + y * (0.041666666666666664 +
               y * (0.008333333333333333 + y * 0.001388888888888889)))));
    double p2 = p * p, p4 = p2 * p2, p8 = p4 * p4;
    return p8 * p8;
}

static inline double log9(double x) {
    double z = (x - 1.0) / (x + 1.0), s = z * z;
    return (2.0 * z) * (1.0 + s * (0.3333333333333333 + s * (0.2 + s * (0.14285714285714285 +
           s * 0.1111111111111111))));
}
#endif

static inline double normal(double d) {
    double k = 1.0 / (1.0 + 0.2316419 * fabs(d));
    double tail = (0.3989422804014327 * exp16(-0.5 * (d * d))) *
                  (k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 +
                  k * 1.330274429)))));
    return d < 0.0 ? tail : 1.0 - tail;
}

void work(int64_t n, double rate, double volatility, const double *restrict price,
          const double *restrict strike, const double *restrict years, double *restrict call,
          double *restrict put) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        double s = price[i], k = strike[i], t = years[i];
        double spread = volatility * sqrt(t);
        double d1 = (log9(s / k) + (rate + (0.5 * volatility) * volatility) * t) / spread;
        double d2 = d1 - spread;
        double discounted = k * exp16(-(rate * t));
        double n1 = normal(d1), n2 = normal(d2);
        call[i] = s * n1 - discounted * n2;
        put[i] = discounted * (1.0 - n2) - s * (1.0 - n1);
    }
}
