// SPDX-License-Identifier: Apache-2.0
// Values pass 2^32 but stay below 2^53, where doubles are exact; `&` looks at their low 32 bits.
export function work(n) {
  let best = 0, longest = 0;
  for (let i = 1; i < n; i++) {
    let value = i, steps = 1;
    while (value !== 1) {
      value = (value & 1) === 0 ? value / 2 : value * 3 + 1;
      steps++;
    }
    if (steps > longest) {
      longest = steps;
      best = i;
    }
  }
  return best;
}
