// Shows the operations of one source line, and says all about a chosen operation.
"use strict";

const about = document.getElementById("about");
const buttons = [...document.querySelectorAll(".line")];

for (const button of buttons) {
  button.addEventListener("click", () => {
    const is_on = button.getAttribute("aria-pressed") !== "true";
    for (const other of buttons) other.setAttribute("aria-pressed", String(is_on && other === button));
    for (const cell of document.querySelectorAll(".picked")) cell.classList.remove("picked");
    document.body.classList.toggle("picking", is_on);
    if (!is_on) return;
    const cells = document.querySelectorAll(`.op.${button.dataset.line}`);
    for (const cell of cells) cell.classList.add("picked");
    if (cells.length) cells[0].scrollIntoView({ block: "center", inline: "nearest" });
  });
}

function tell(event) {
  const cell = event.target.closest(".op");
  about.hidden = !cell;
  about.textContent = cell ? cell.title : "";
}

document.querySelector("main").addEventListener("click", tell);
document.querySelector("main").addEventListener("focusin", tell);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") about.hidden = true;
});
