// SPDX-License-Identifier: Apache-2.0
export function work(n) {
  const bytes = new Uint8Array(n);
  let state = 1;
  for (let i = 0; i < n; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    bytes[i] = state >>> 24;
  }
  let hash = 2166136261 | 0;
  for (let i = 0; i < n; i++) hash = Math.imul(hash ^ bytes[i], 16777619);
  return hash >>> 0;
}
