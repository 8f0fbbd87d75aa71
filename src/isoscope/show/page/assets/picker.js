// Picking one head of an album: lists of units, layers and heads, or a click on a map or a plane.
const digits = (x) => String(Number(x.toPrecision(2))).replace("-", "−");

// The points of which both coordinates are numbers: what is NaN or Inf in a run is null here.
function whole([x, y]) {
  const there = [...x.keys()].filter((i) => x[i] !== null && y[i] !== null);
  return [x, y].map((axis) => there.map((i) => axis[i]));
}

// Gives a panel the points of a head, and its layout what `change` makes of it.
function fill({ plot }, lines, change) {
  const figure = JSON.parse(plot.text);
  lines.forEach(([x, y], i) => Object.assign(figure.data[i], { x, y }));
  change(figure.layout);
  plot.text = JSON.stringify(figure);
}

function describe({ plot, heading, caption }, where, text, more = "") {
  caption.textContent = text;
  plot.node.ariaLabel = `${heading}, ${where}. ${text} ${more}`.trim();
}

// `showing` is given the album, what it holds and its panels; what it returns shows the head that is picked.
function picker(album, showing) {
  const held = JSON.parse(album.querySelector("script.points").textContent, (_, value) =>
    value?.letters ? unpacked(value)[0] : value,
  );
  const panels = all(".panel", album).map((node) => ({
    plot: plots.find((one) => node.contains(one.node)),
    heading: node.querySelector("h3").firstChild.textContent.trim(),
    remark: node.querySelector("h3 small"),
    caption: node.querySelector(".seen"),
    ...node.dataset,
  }));
  const show = showing(album, held, panels);
  const { units, kinds, heads, first } = held;
  const selects = all("select", album);
  const status = album.querySelector("[role=status]");
  const names = heads.map(([unit, kind, layer, head]) => [String(unit), `${kind} ${layer}`, String(head)]);
  const at = (wanted) => names.findIndex((name) => name.every((value, i) => value === wanted[i]));
  const ofLayer = ([kind, layer]) => (kinds[kind] ? `${kinds[kind]} ${layer}` : layer);
  const labels = [(unit) => units[unit], (value) => ofLayer(value.split(" ")), (head) => head];

  // Each list holds what is there under what is picked before it.
  function pick(wanted) {
    const chosen = [];
    selects.forEach((select, list) => {
      const under = names.filter((name) => chosen.every((value, i) => name[i] === value));
      const values = [...new Set(under.map((name) => name[list]))];
      const kept = values.includes(wanted[list]) ? wanted[list] : values[0];
      const option = (value) => new Option(labels[list](value), value, false, value === kept);
      select.replaceChildren(...values.map(option));
      chosen.push(kept);
    });
    const [unit, kind, layer, head, points] = heads[at(chosen)];
    const step = units.length > 1 ? `${album.dataset.along} ${units[unit]}, ` : "";
    const where = `${step}${kinds[kind] ?? "layer"} ${layer}, head ${head}`;
    status.textContent = `${where}${show({ unit, kind, layer, head, points, where })}`;
    redraw(album);
  }

  for (const select of selects) {
    select.addEventListener("change", () => pick(selects.map((one) => one.value)));
  }
  for (const node of all(".maps .plot, .planes .plot", album.closest("figure"))) {
    node.addEventListener("cell", ({ detail: { x, y, data, customdata } }) => {
      const [unit, before] = selects.map((one) => one.value);
      const [kind, layer, head] = customdata ?? [data.meta?.kind ?? before.split(" ")[0], y, x];
      const wanted = [unit, `${kind} ${layer}`, String(head)];
      if (at(wanted) >= 0) pick(wanted);
      else status.textContent = `layer ${layer}, head ${head} has no picture`;
    });
  }
  pick(names[first]);
}
