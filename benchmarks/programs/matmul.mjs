// SPDX-License-Identifier: Apache-2.0
function multiply(n, a, b, c) {
  for (let i = 0; i < n; i++)
    for (let j = 0; j < n; j++) {
      let sum = 0.0;
      for (let k = 0; k < n; k++) sum = sum + a[i * n + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
}

export function work(n, times) {
  const size = n * n;
  const a = new Float64Array(size), b = new Float64Array(size), c = new Float64Array(size);
  for (let i = 0; i < size; i++) {
    a[i] = (i % 13) / 7.0;
    b[i] = (i % 11) / 3.0 - 1.0;
  }
  for (let time = 0; time < times; time++) {
    multiply(n, a, b, c);
    a[0] = c[0] * 0.001;
  }
  let total = 0.0;
  for (let i = 0; i < size; i++) total = total + c[i];
  return total;
}
