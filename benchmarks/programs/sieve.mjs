// SPDX-License-Identifier: Apache-2.0
export function work(n) {
  const composite = new Uint8Array(n);
  let count = 0;
  for (let i = 2; i < n; i++) {
    if (composite[i] === 0) {
      count++;
      for (let j = i * i; j < n; j += i) composite[j] = 1;
    }
  }
  return count;
}
