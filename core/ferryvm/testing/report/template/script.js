// Filters the programs, and shows an instruction's edge classes on demand.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const number = new Intl.NumberFormat("en");

for (const part of document.querySelectorAll("[data-script]")) part.hidden = false;

function element(name, css, text) {
  const made = document.createElement(name);
  if (css) made.className = css;
  if (text !== undefined) made.textContent = text;
  return made;
}

// --- programs ---

const verdict = document.getElementById("verdict");
const wanted = document.getElementById("name");
const programs = [...document.querySelectorAll(".matrix tbody tr")];

function filter() {
  const part = wanted.value.toLowerCase();
  let count = 0;
  for (const row of programs) {
    const name = row.querySelector("th").textContent.toLowerCase();
    const verdicts = row.dataset.verdicts.split(" ");
    row.hidden = !name.includes(part) || (verdict.value !== "" && !verdicts.includes(verdict.value));
    if (!row.hidden) count += 1;
  }
  const all = count === programs.length;
  document.getElementById("shown").textContent = all ? "" : `${count} of ${programs.length}`;
}

verdict.addEventListener("change", filter);
wanted.addEventListener("input", filter);

// --- coverage ---

const select = document.getElementById("run");
let open = null;

function run() {
  return data.runs[Number(select.value)];
}

function fill(cell) {
  const opcode = cell.dataset.opcode;
  const count = run().counts[opcode] || 0;
  const met = Object.keys(run().edges[opcode] || {}).length;
  const edges = data.instructions[opcode].edges.length;
  cell.classList.toggle("run", count > 0);
  cell.querySelector(".count").textContent = count ? number.format(count) : "not run";
  cell.querySelector(".meter span").style.width = edges ? `${(100 * met) / edges}%` : "0";
  cell.querySelector(".edges").textContent = edges ? `${met} of ${edges} edges` : "no edges";
}

function panel(opcode) {
  const row = data.instructions[opcode];
  const met = run().edges[opcode] || {};
  const made = element("div", "panel");
  const head = element("p", "panel-head");
  head.append(element("code", "", row.effect), " ", row.summary);
  made.append(head);
  const groups = new Map();
  row.edges.forEach(([group, name], index) => {
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push([name, met[index] || 0]);
  });
  if (!groups.size) made.append(element("p", "note", "It has no edge classes."));
  const list = element("dl", "edge-groups");
  for (const [group, edges] of groups) {
    const part = element("div");
    part.append(element("dt", "", group));
    for (const [name, count] of edges) {
      const edge = element("dd", count ? "edge met" : "edge", name);
      const times = count ? ` ×${number.format(count)}` : " not met";
      edge.append(element("span", count ? "times" : "hidden", times));
      part.append(edge);
    }
    list.append(part);
  }
  made.append(list);
  return made;
}

function close() {
  if (!open) return;
  open.cell.setAttribute("aria-expanded", "false");
  open.panel.remove();
  open = null;
}

function show(cell) {
  close();
  const slot = cell.parentElement;
  const made = panel(cell.dataset.opcode);
  slot.append(made);
  cell.setAttribute("aria-expanded", "true");
  open = { cell, panel: made };
}

const cells = [...document.querySelectorAll(".cell")];
for (const cell of cells) {
  cell.addEventListener("click", () => {
    if (open && open.cell === cell) close();
    else show(cell);
  });
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && open) {
    open.cell.focus();
    close();
  }
});

function refresh() {
  cells.forEach(fill);
  for (const shown of document.querySelectorAll(".chapter-run")) {
    const grid = document.querySelector(`.grid[data-chapter="${shown.dataset.chapter}"]`);
    shown.textContent = grid.querySelectorAll(".cell.run").length;
  }
  if (open) show(open.cell);
}

select.addEventListener("change", refresh);
filter();
refresh(); // a browser may have kept what was chosen before
