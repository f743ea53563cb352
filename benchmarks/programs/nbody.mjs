// SPDX-License-Identifier: Apache-2.0
const BODIES = 5;
const [x, y, z, vx, vy, vz, mass] = Array.from({ length: 7 }, () => new Float64Array(BODIES));

function start() {
  for (let i = 0; i < BODIES; i++) {
    x[i] = i * 3.25;
    y[i] = 1.5 - i * 0.75;
    z[i] = i * i * 0.125;
    vx[i] = 0.1 * i - 0.05 * i * i;
    vy[i] = 0.5 - 0.15 * i;
    vz[i] = 0.02 * i;
    mass[i] = 8.0 / (1.0 + 4.0 * i);
  }
}

function advance(dt) {
  for (let i = 0; i < BODIES; i++) {
    for (let j = i + 1; j < BODIES; j++) {
      const dx = x[i] - x[j], dy = y[i] - y[j], dz = z[i] - z[j];
      const square = dx * dx + dy * dy + dz * dz;
      const pull = dt / (square * Math.sqrt(square));
      const mi = mass[i] * pull, mj = mass[j] * pull;
      vx[i] = vx[i] - dx * mj;
      vy[i] = vy[i] - dy * mj;
      vz[i] = vz[i] - dz * mj;
      vx[j] = vx[j] + dx * mi;
      vy[j] = vy[j] + dy * mi;
      vz[j] = vz[j] + dz * mi;
    }
  }
  for (let i = 0; i < BODIES; i++) {
    x[i] = x[i] + dt * vx[i];
    y[i] = y[i] + dt * vy[i];
    z[i] = z[i] + dt * vz[i];
  }
}

function energy() {
  let total = 0.0;
  for (let i = 0; i < BODIES; i++) {
    const speed = vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i];
    total = total + 0.5 * mass[i] * speed;
    for (let j = i + 1; j < BODIES; j++) {
      const dx = x[i] - x[j], dy = y[i] - y[j], dz = z[i] - z[j];
      total = total - (mass[i] * mass[j]) / Math.sqrt(dx * dx + dy * dy + dz * dz);
    }
  }
  return total;
}

export function work(steps) {
  start();
  for (let step = 0; step < steps; step++) advance(0.01);
  return energy();
}
