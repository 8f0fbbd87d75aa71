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

// The cells of large maps come as two letters each: a level between the least and the largest, the last one a gap.
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const levels = new Map([...LETTERS].map((letter, level) => [letter, level]));
function unpacked({ across, low, high, letters }) {
  const cell = (at) => {
    const level = 64 * levels.get(letters[at]) + levels.get(letters[at + 1]);
    return level === 4095 ? null : low + ((high - low) * level) / 4094;
  };
  const line = (start) => Array.from({ length: across }, (_, i) => cell(start + 2 * i));
  return Array.from({ length: letters.length / (2 * across) }, (_, i) => line(2 * across * i));
}

// A figure as plotly takes it; on a dark screen with the pair of every colour.
function drawable(text, isDark) {
  const swapped = (_, value) => (typeof value === "string" ? (dark.get(value) ?? value) : value);
  const { data, layout } = JSON.parse(text, isDark ? swapped : undefined);
  for (const one of data) if (one.z?.letters) one.z = unpacked(one.z);
  return { data, layout };
}

// What is folded has no width yet: it is drawn when it is opened.
const shown = ({ node }) => !node.closest("details:not([open]), [hidden]");

function drawOne(plot, isDark) {
  if (!window.Plotly) return; // it is drawn when that has come
  const { node, text } = plot;
  const { data, layout } = drawable(text, isDark);
  for (const change of changes) change(data, layout);
  for (const one of data) if (one.meta?.steps) one.customdata = one.z.map(() => one.meta.steps);
  const options = { responsive: true, displaylogo: false, modeBarButtons: [["toImage"]] };
  Plotly.react(node, data, layout, options);
  plot.drawn?.();
  if (node.dataset.heard) return;
  node.dataset.heard = "true";
  node.on("plotly_afterplot", () => plot.drawn?.());
  node.on("plotly_click", ({ points: [detail] }) => node.dispatchEvent(new CustomEvent("cell", { detail })));
}

function draw(isDark, within = document) {
  for (const plot of plots) if (within.contains(plot.node) && shown(plot)) drawOne(plot, isDark);
}

// What was drawn is drawn as it is now; what was not waits for its turn.
const drawn = ({ node }) => node.dataset.heard !== undefined;
function redraw(within = document) {
  for (const plot of plots) if (drawn(plot) && within.contains(plot.node) && shown(plot)) drawOne(plot, screen_.matches);
}

// What is in view or near it is drawn first, the rest from the top, so many as take 0.1 s at a time.
function drawNext() {
  const until = performance.now() + 100;
  const waiting = plots.filter((plot) => !drawn(plot) && shown(plot));
  while (waiting.length && performance.now() < until) drawOne(waiting.shift(), screen_.matches);
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
    const near = ({ node }) => node.getBoundingClientRect().top < 1.5 * window.innerHeight;
    for (const plot of plots.filter((one) => shown(one) && near(one))) drawOne(plot, screen_.matches);
    setTimeout(drawNext);
  },
  (reason) => {
    for (const { node } of plots) node.textContent = `Figures need a browser of 2023 or later (${reason.message}).`;
  },
);

const folded = [...document.querySelectorAll("details.section")];
let opened = [];

screen_.addEventListener("change", () => redraw());
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
