/* SPDX-License-Identifier: Apache-2.0 */
/* The energy of five bodies after a number of steps of 0.01. The start is made up: every peer has the same. */
#include <stdint.h>

#define BODIES 5

static double x[BODIES], y[BODIES], z[BODIES];
static double vx[BODIES], vy[BODIES], vz[BODIES], mass[BODIES];

static void start(void) {
    for (int64_t i = 0; i < BODIES; i++) {
        double d = (double)i;
        x[i] = d * 3.25;
        y[i] = 1.5 - d * 0.75;
        z[i] = d * d * 0.125;
        vx[i] = 0.1 * d - 0.05 * d * d;
        vy[i] = 0.5 - 0.15 * d;
        vz[i] = 0.02 * d;
        mass[i] = 8.0 / (1.0 + 4.0 * d);
    }
}

static void advance(double dt) {
    for (int64_t i = 0; i < BODIES; i++) {
        for (int64_t j = i + 1; j < BODIES; j++) {
            double dx = x[i] - x[j], dy = y[i] - y[j], dz = z[i] - z[j];
            double square = dx * dx + dy * dy + dz * dz;
            double pull = dt / (square * __builtin_sqrt(square));
            double mi = mass[i] * pull, mj = mass[j] * pull;
            vx[i] = vx[i] - dx * mj;
            vy[i] = vy[i] - dy * mj;
            vz[i] = vz[i] - dz * mj;
            vx[j] = vx[j] + dx * mi;
            vy[j] = vy[j] + dy * mi;
            vz[j] = vz[j] + dz * mi;
        }
    }
    for (int64_t i = 0; i < BODIES; i++) {
        x[i] = x[i] + dt * vx[i];
        y[i] = y[i] + dt * vy[i];
        z[i] = z[i] + dt * vz[i];
    }
}

static double energy(void) {
    double total = 0.0;
    for (int64_t i = 0; i < BODIES; i++) {
        double speed = vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i];
        total = total + 0.5 * mass[i] * speed;
        for (int64_t j = i + 1; j < BODIES; j++) {
            double dx = x[i] - x[j], dy = y[i] - y[j], dz = z[i] - z[j];
            total = total - mass[i] * mass[j] / __builtin_sqrt(dx * dx + dy * dy + dz * dz);
        }
    }
    return total;
}

double work(int64_t steps) {
    start();
    for (int64_t step = 0; step < steps; step++)
        advance(0.01);
    return energy();
}
