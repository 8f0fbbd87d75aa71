"use strict";

// Figures are made for white paper; on a dark screen each colour is swapped for its pair.
const dark = new Map(Object.entries(JSON.parse(document.getElementById("dark").textContent)));
const screen_ = window.matchMedia("(prefers-color-scheme: dark)");
const plots = [...document.querySelectorAll(".plot")].map((node) => ({
  node,
  text: node.querySelector("script").textContent,
}));

function draw(isDark) {
  for (const { node, text } of plots) {
    const { data, layout } = JSON.parse(text, (_, value) =>
      isDark && typeof value === "string" ? (dark.get(value) ?? value) : value,
    );
    const options = { responsive: true, displaylogo: false, modeBarButtons: [["toImage"]] };
    Plotly.react(node, data, layout, options);
  }
}

draw(screen_.matches);
screen_.addEventListener("change", () => draw(screen_.matches));
window.addEventListener("beforeprint", () => draw(false));
window.addEventListener("afterprint", () => draw(screen_.matches));

// The table sorts by the heading that is clicked; what has no value comes last either way.
function compare(a, b) {
  if (a.key === "" || b.key === "") return (a.key === "") - (b.key === "");
  return a.sign * (a.number ? Number(a.key) - Number(b.key) : a.key.localeCompare(b.key, "en"));
}

for (const heading of document.querySelectorAll("table.rows th")) {
  heading.querySelector("button").addEventListener("click", () => {
    const sign = heading.ariaSort === "ascending" ? -1 : 1;
    for (const other of heading.parentNode.children) other.ariaSort = "none";
    heading.ariaSort = sign > 0 ? "ascending" : "descending";
    const body = heading.closest("table").tBodies[0];
    const lines = [...body.rows].map((row) => {
      const { key, number } = row.cells[heading.cellIndex].dataset;
      return { row, key, sign, number: number !== undefined };
    });
    body.append(...lines.sort(compare).map(({ row }) => row));
  });
}
