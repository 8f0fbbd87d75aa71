"use strict";

// Figures are made for white paper; on a dark screen each colour is swapped for its pair.
const dark = new Map(Object.entries(JSON.parse(document.getElementById("dark").textContent)));
const screen_ = window.matchMedia("(prefers-color-scheme: dark)");
const plots = [...document.querySelectorAll(".plot")].map((node) => ({
  node,
  text: node.querySelector("script").textContent,
}));

// What else changes a figure before it is drawn, such as another axis.
const changes = [];

// What is folded has no width yet: it is drawn when it is opened.
function draw(isDark, within = document) {
  for (const { node, text } of plots) {
    if (!within.contains(node) || node.closest("details:not([open]), [hidden]")) continue;
    const { data, layout } = JSON.parse(text, (_, value) =>
      isDark && typeof value === "string" ? (dark.get(value) ?? value) : value,
    );
    for (const change of changes) change(data, layout);
    for (const one of data) if (one.meta?.steps) one.customdata = one.z.map(() => one.meta.steps);
    const options = { responsive: true, displaylogo: false, modeBarButtons: [["toImage"]] };
    Plotly.react(node, data, layout, options);
    if (node.dataset.heard) continue;
    node.dataset.heard = "true";
    node.on("plotly_click", ({ points: [detail] }) => node.dispatchEvent(new CustomEvent("cell", { detail })));
  }
}

const folded = [...document.querySelectorAll("details.section")];
let opened = [];

draw(screen_.matches);
screen_.addEventListener("change", () => draw(screen_.matches));
for (const section of folded) section.addEventListener("toggle", () => draw(screen_.matches, section));
window.addEventListener("beforeprint", () => {
  opened = folded.filter((section) => !section.open);
  for (const section of opened) section.open = true;
  draw(false);
});
window.addEventListener("afterprint", () => {
  for (const section of opened) section.open = false;
  draw(screen_.matches);
});

// Groups of layers: the list shows one of them.
for (const list of document.querySelectorAll(".groups select")) {
  const groups = [...list.closest(".groups").querySelectorAll(".group")];
  list.addEventListener("change", () => {
    groups.forEach((group, at) => (group.hidden = at !== list.selectedIndex));
    draw(screen_.matches, groups[list.selectedIndex]);
  });
}

// A link to a folded section opens it.
function unfold(id) {
  const section = folded.find((one) => one.id === id);
  if (section) section.open = true;
}
unfold(decodeURIComponent(location.hash.slice(1)));
for (const link of document.querySelectorAll("nav a")) {
  link.addEventListener("click", () => unfold(link.getAttribute("href").slice(1)));
}
