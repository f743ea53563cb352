/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of the iteration counts over a square of n x n points of the Mandelbrot set. */
#include <stdint.h>

int64_t work(int64_t n, int64_t limit) {
    int64_t total = 0;
    double side = (double)n;
    for (int64_t row = 0; row < n; row++) {
        double ci = (double)row * 2.0 / side - 1.0;
        for (int64_t column = 0; column < n; column++) {
            double cr = (double)column * 3.0 / side - 2.0;
            double zr = 0.0, zi = 0.0, rr = 0.0, ii = 0.0;
            int64_t count = 0;
            while (count < limit && rr + ii <= 4.0) {
                zi = 2.0 * zr * zi + ci;
                zr = rr - ii + cr;
                rr = zr * zr;
                ii = zi * zi;
                count++;
            }
            total += count;
        }
    }
    return total;
}
