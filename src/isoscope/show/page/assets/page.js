"use strict";

// Figures are made for white paper; on a dark screen each colour is swapped for its pair.
const dark = new Map(Object.entries(JSON.parse(document.getElementById("dark").textContent)));
const screen_ = window.matchMedia("(prefers-color-scheme: dark)");
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const plots = all(".plot").map((node) => ({ node, text: node.querySelector("script").textContent }));

// What else changes a figure before it is drawn, such as another axis.
const changes = [];

// Cells of large maps come as two letters each: a level between the least and the largest, the last a gap.
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
function unpacked({ across, low, high, letters }) {
  const cells = Array.from({ length: letters.length / 2 }, (_, i) => {
    const level = 64 * LETTERS.indexOf(letters[2 * i]) + LETTERS.indexOf(letters[2 * i + 1]);
    return level === 4095 ? null : low + ((high - low) * level) / 4094;
  });
  return Array.from({ length: cells.length / across }, (_, i) => cells.slice(across * i, across * (i + 1)));
}

// What is folded has no width yet: it is drawn when it is opened. What was drawn hears clicks.
const shown = ({ node }) => !node.closest("details:not([open]), [hidden]");
const drawn = ({ node }) => node.dataset.heard !== undefined;

function drawOne(plot, isDark = screen_.matches) {
  if (!window.Plotly) return; // it is drawn when that has come
  const { node, text } = plot;
  const swapped = (_, value) => (typeof value === "string" ? (dark.get(value) ?? value) : value);
  const { data, layout } = JSON.parse(text, isDark ? swapped : undefined);
  for (const one of data) if (one.z?.letters) one.z = unpacked(one.z);
  for (const change of changes) change(data, layout);
  for (const one of data) if (one.meta?.steps) one.customdata = one.z.map(() => one.meta.steps);
  Plotly.react(node, data, layout, { responsive: true, displaylogo: false, modeBarButtons: [["toImage"]] });
  plot.drawn?.();
  if (drawn(plot)) return;
  node.dataset.heard = "true";
  node.on("plotly_afterplot", () => plot.drawn?.());
  node.on("plotly_click", ({ points: [detail] }) => node.dispatchEvent(new CustomEvent("cell", { detail })));
}

function draw(within = document, wanted = () => true, isDark = screen_.matches) {
  const found = plots.filter((plot) => within.contains(plot.node) && shown(plot) && wanted(plot));
  for (const plot of found) drawOne(plot, isDark);
}
const redraw = (within) => draw(within, drawn); // what was not drawn waits for its turn

// What is in view or near it is drawn first, the rest from the top, so many as take 0.1 s at a time.
function drawNext() {
  const until = performance.now() + 100;
  const waiting = plots.filter((plot) => !drawn(plot) && shown(plot));
  while (waiting.length && performance.now() < until) drawOne(waiting.shift());
  if (waiting.length) setTimeout(drawNext);
}

// What draws comes compressed; a page that is being watched has it already.
async function unpackLibrary() {
  const carried = document.getElementById("library");
  if (!carried) return;
  const bytes = Uint8Array.from(atob(carried.textContent), (letter) => letter.charCodeAt(0));
  const script = document.createElement("script");
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  script.textContent = await new Response(stream).text();
  document.head.append(script);
}
unpackLibrary().then(
  () => {
    draw(document, ({ node }) => node.getBoundingClientRect().top < 1.5 * window.innerHeight);
    setTimeout(drawNext);
  },
  ({ message }) => {
    for (const { node } of plots) node.textContent = `Figures need a browser of 2023 or later (${message}).`;
  },
);

const folded = all("details.section");
let opened = [];

screen_.addEventListener("change", () => redraw());
for (const section of folded) section.addEventListener("toggle", () => draw(section));
window.addEventListener("beforeprint", () => {
  opened = folded.filter((section) => !section.open);
  for (const section of opened) section.open = true;
  draw(document, () => true, false);
});
window.addEventListener("afterprint", () => {
  for (const section of opened) section.open = false;
  draw();
});

// Groups of layers: the list shows one of them.
for (const list of all(".groups select")) {
  const groups = all(".group", list.closest(".groups"));
  list.addEventListener("change", () => {
    groups.forEach((group, at) => (group.hidden = at !== list.selectedIndex));
    draw(groups[list.selectedIndex]);
  });
}

// A link to a folded section opens it.
function unfold(hash) {
  for (const section of folded) if (`#${section.id}` === hash) section.open = true;
}
unfold(decodeURIComponent(location.hash));
for (const link of all("nav a")) link.addEventListener("click", () => unfold(link.getAttribute("href")));
