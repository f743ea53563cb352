// SPDX-License-Identifier: Apache-2.0
// Runs a JavaScript twin: `drive.mjs WARM,... TWIN SIZE...` prints the seconds of its work with the
// sizes, after a run with the small sizes WARM that nobody measures, and its result.
import { pathToFileURL } from "node:url";

const [warm, twin, ...sizes] = process.argv.slice(2);
const { work } = await import(pathToFileURL(twin));
work(...warm.split(",").map(Number));
const start = performance.now();
const result = work(...sizes.map(Number));
const seconds = (performance.now() - start) / 1e3;
console.log(`${seconds.toFixed(9)} ${result}`);
