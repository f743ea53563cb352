// SPDX-License-Identifier: Apache-2.0
export function work(nx, ny, nz) {
  let sum = 0;
  for (let x = 0; x < nx; x++)
    for (let y = 0; y < ny; y++)
      for (let z = 0; z < nz; z++) sum = sum + 1;
  return sum;
}
