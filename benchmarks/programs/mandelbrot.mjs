// SPDX-License-Identifier: Apache-2.0
export function work(n, limit) {
  let total = 0;
  for (let row = 0; row < n; row++) {
    const ci = (row * 2.0) / n - 1.0;
    for (let column = 0; column < n; column++) {
      const cr = (column * 3.0) / n - 2.0;
      let zr = 0.0, zi = 0.0, rr = 0.0, ii = 0.0, count = 0;
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
