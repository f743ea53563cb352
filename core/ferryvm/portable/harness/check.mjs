// SPDX-License-Identifier: Apache-2.0
// Checks an exported WebAssembly function with its golden vectors: node check.mjs [MODULE [FOLDER]].
// The exit status is 1 if a vector fails, 2 if the files are damaged.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker, isMainThread, parentPort } from "node:worker_threads";

const WIDTHS = { i8: 1, u8: 1, i16: 2, u16: 2, i32: 4, u32: 4, i64: 8, f32: 4, f64: 8 };
const isNaNOf = {
  f32: (bits) => (bits & 0x7fffffffn) > 0x7f800000n,
  f64: (bits) => (bits & 0x7fffffffffffffffn) > 0x7ff0000000000000n,
};

function equal(a, b, type) {
  const isNaN = isNaNOf[type];
  return a === b || (isNaN !== undefined && isNaN(a) && isNaN(b));
}

function number(bits, type) {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, bits, true);
  if (type === "i32") return view.getInt32(0, true);
  if (type === "i64") return view.getBigInt64(0, true);
  return type === "f32" ? view.getFloat32(0, true) : view.getFloat64(0, true);
}

function read(view, at, width) {
  let bits = 0n;
  for (let i = width - 1; i >= 0; --i) bits = (bits << 8n) | BigInt(view.getUint8(at + i));
  return bits;
}

function write(view, at, width, bits) {
  for (let i = 0; i < width; ++i, bits >>= 8n) view.setUint8(at + i, Number(bits & 0xffn));
}

function* vectors(path, name) {
  const words = readFileSync(path, "ascii").split(/\s+/).filter((word) => word !== "");
  let at = 0;
  const next = () => {
    if (at >= words.length) throw new Error(`${path} ends early`);
    return words[at++];
  };
  const bits = () => BigInt("0x" + next());
  const elements = () => Array.from({ length: Number(next()) }, bits);
  if (next() !== "ferryvm-vectors" || next() !== "1" || next() !== name) {
    throw new Error(`${path}: no vectors of ${name}`);
  }
  while (at < words.length) {
    if (next() !== "v") throw new Error(`${path}: damaged near word ${at}`);
    const vector = { number: next(), status: Number(next()), given: [], outputs: new Map(), results: [] };
    for (let kind = next(); kind !== "."; kind = next()) {
      if (kind === "s") vector.given.push({ bits: bits() });
      else if (kind === "a") vector.given.push({ elements: elements() });
      else if (kind === "=") vector.given.push({ same: Number(next()) });
      else if (kind === "o") vector.outputs.set(Number(next()), elements());
      else if (kind === "r") vector.results.push(bits());
      else throw new Error(`${path}: damaged near ${kind}`);
    }
    yield vector;
  }
}

// The value of whole numbers, names, + - * and parentheses.
function expression(text, names) {
  const words = String(text).match(/\w+|\S/g);
  const operand = () => {
    const word = words.shift();
    if (word === "(") {
      const value = sum();
      words.shift();
      return value;
    }
    if (/^\d+$/.test(word)) return BigInt(word);
    if (!(word in names)) throw new Error(`${text}: ${word} is no argument`);
    return BigInt(names[word]);
  };
  const product = () => {
    let value = operand();
    while (words[0] === "*") value *= (words.shift(), operand());
    return value;
  };
  const sum = () => {
    let value = product();
    while (words[0] === "+" || words[0] === "-") value = words.shift() === "+" ? value + product() : value - product();
    return value;
  };
  return sum();
}

function fault(exported, name, manifest, vector) {
  const kinds = manifest.arguments.filter((each) => each.kind === "scalar" || each.kind === "array");
  const results = manifest.arguments.filter((each) => each.kind === "result");
  if (kinds.length !== vector.given.length) throw new Error(`vector ${vector.number} has other arguments`);
  let end = (manifest.build.reserved + 1023) & ~1023; // where arrays and results begin in memory
  const place = (bytes) => {
    const at = end;
    end += (bytes + 7) & ~7;
    const missing = end - exported.memory.buffer.byteLength;
    if (missing > 0) exported.memory.grow(Math.ceil(missing / 65536));
    return at;
  };
  const words = [];
  const arrays = new Map();
  const names = {};
  vector.given.forEach((argument, n) => {
    const type = kinds[n].type;
    if (argument.bits !== undefined) {
      words.push(number(argument.bits, type));
      names[kinds[n].name] = words.at(-1);
      return;
    }
    if (argument.same === undefined) {
      const width = WIDTHS[type];
      const at = place(width * argument.elements.length);
      const view = new DataView(exported.memory.buffer);
      argument.elements.forEach((bits, i) => write(view, at + width * i, width, bits));
      arrays.set(n, { at, elements: argument.elements });
    }
    const array = arrays.get(argument.same ?? n);
    words.push(array.at, BigInt(array.elements.length));
    names[`${kinds[n].name}_length`] = words.at(-1);
  });
  for (const { type, shape } of manifest.arguments.filter((each) => each.kind === "lent")) {
    // Memory for an array of a group. Its content means nothing.
    const length = expression(shape[0], names);
    const at = place(WIDTHS[type] * Number(length));
    new Uint8Array(exported.memory.buffer, at, WIDTHS[type] * Number(length)).fill(0xa5);
    words.push(at, length);
  }
  const found = results.map(() => place(8));
  let status;
  try {
    status = exported[name](...words, ...found);
  } catch (error) {
    return String(error);
  }
  const view = new DataView(exported.memory.buffer);
  if (status !== vector.status) return `status ${status}, expected ${vector.status}`;
  for (const [n, expected] of vector.results.entries()) {
    const { name: title, type } = results[n];
    const bits = read(view, found[n], WIDTHS[type]);
    if (!equal(bits, expected, type)) {
      return `${title} is ${bits.toString(16)}, expected ${expected.toString(16)}`;
    }
  }
  for (const [n, array] of arrays) {
    const { name: title, type } = kinds[n];
    const expected = vector.outputs.get(n) ?? array.elements;
    for (let i = 0; i < expected.length; ++i) {
      const bits = read(view, array.at + WIDTHS[type] * i, WIDTHS[type]);
      if (!equal(bits, expected[i], type)) {
        return `${title}[${i}] is ${bits.toString(16)}, expected ${expected[i].toString(16)}`;
      }
    }
  }
  return undefined;
}

function check(path, folder) {
  const manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
  const name = manifest.entry;
  const module = new WebAssembly.Module(readFileSync(path ?? join(folder, `${name}.wasm`)));
  const { exports: exported } = new WebAssembly.Instance(module, {});
  const lines = [];
  let tried = 0;
  for (const vector of vectors(join(folder, manifest.vectors.file), name)) {
    ++tried;
    parentPort.postMessage({ vector: vector.number });
    const found = fault(exported, name, manifest, vector);
    if (found !== undefined) lines.push(`vector ${vector.number}: ${found}`);
  }
  const failed = lines.length;
  const is_right = failed === 0 && tried > 0;
  const outcome = is_right ? `${tried} vectors pass` : `${failed} of ${tried} vectors fail`;
  lines.push(`${name}: ${outcome} (JavaScript)`);
  return { lines, status: is_right ? 0 : 1 };
}

function end(lines, status) {
  console.log(lines.join("\n"));
  process.exit(status);
}

if (isMainThread) {
  // The calls run in a worker, so that one that does not end can be ended.
  const limit = Number(process.env.CHECK_SECONDS ?? 10) * 1000;
  const worker = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2) });
  let timer;
  worker.on("message", (message) => {
    clearTimeout(timer);
    if (message.vector === undefined) end(message.lines, message.status);
    timer = setTimeout(() => end([`vector ${message.vector}: does not end`], 1), limit);
  });
} else {
  try {
    parentPort.postMessage(check(process.argv[2], process.argv[3] ?? dirname(fileURLToPath(import.meta.url))));
  } catch (error) {
    parentPort.postMessage({ lines: [`check.mjs: ${error.message}`], status: 2 });
  }
}
