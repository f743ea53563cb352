/* SPDX-License-Identifier: Apache-2.0 */
/* Accelerations of the first n of all bodies by all bodies, a body an item. */
#include <math.h>
#include <stdint.h>

void work(int64_t n, int64_t bodies, const double *restrict x, const double *restrict y,
          const double *restrict z, const double *restrict mass, double *restrict ax,
          double *restrict ay, double *restrict az) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        double xi = x[i], yi = y[i], zi = z[i], sx = 0.0, sy = 0.0, sz = 0.0;
        for (int64_t j = 0; j < bodies; j++) {
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
}
