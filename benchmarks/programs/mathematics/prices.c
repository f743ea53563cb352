/* SPDX-License-Identifier: Apache-2.0 */
/* Prices of European calls and puts, an option an item, by exp and log of the C library. The normal
   distribution is formula 26.2.17 of Abramowitz and Stegun. */
#include <math.h>
#include <stdint.h>

static inline double normal(double d) {
    double k = 1.0 / (1.0 + 0.2316419 * fabs(d));
    double tail = (0.3989422804014327 * exp(-0.5 * (d * d))) *
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
        double d1 = (log(s / k) + (rate + (0.5 * volatility) * volatility) * t) / spread;
        double d2 = d1 - spread;
        double discounted = k * exp(-(rate * t));
        double n1 = normal(d1), n2 = normal(d2);
        call[i] = s * n1 - discounted * n2;
        put[i] = discounted * (1.0 - n2) - s * (1.0 - n1);
    }
}
