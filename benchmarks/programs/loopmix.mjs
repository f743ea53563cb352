// SPDX-License-Identifier: Apache-2.0
// 64-bit arithmetic is BigInt's; what `asUintN` cuts to 64 bits V8 keeps in a machine word.
export function work(nx, ny, nz) {
  let sum = 0n;
  for (let x = 0; x < nx; x++)
    for (let y = 0; y < ny; y++)
      for (let z = 0; z < nz; z++) sum = BigInt.asUintN(64, sum * 31n + BigInt(x ^ y ^ z));
  return BigInt.asIntN(64, sum);
}
