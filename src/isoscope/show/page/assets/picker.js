// Picking one head of an album: lists of units, layers and heads, or a click on a map or a plane.
function digits(x) {
  return String(Number(x.toPrecision(2))).replace("-", "−");
}

// The points of which both coordinates are numbers: what is NaN or Inf in a run is null here.
function whole([x, y]) {
  const there = [...x.keys()].filter((i) => x[i] !== null && y[i] !== null);
  return [x, y].map((axis) => there.map((i) => axis[i]));
}

function fill(select, labels, wanted) {
  const kept = labels.has(wanted) ? wanted : labels.keys().next().value;
  const options = [...labels].map(([value, label]) => new Option(label, value, false, value === kept));
  select.replaceChildren(...options);
  return kept;
}

// What an album holds; `show` is given the head that is picked, and what to call it.
function picker(album, { units, kinds, heads, first }, show) {
  const selects = ["unit", "layer", "head"].map((name) => album.querySelector(`select[name=${name}]`));
  const status = album.querySelector("[role=status]");
  const names = heads.map(([unit, kind, layer, head]) => [String(unit), `${kind} ${layer}`, String(head)]);
  const label = [
    (value) => units[value],
    (value) => (([kind, layer]) => (kinds[kind] ? `${kinds[kind]} ${layer}` : layer))(value.split(" ")),
    (value) => value,
  ];

  // Each list holds what is there under what is picked before it.
  function pick(wanted) {
    const chosen = [];
    selects.forEach((select, at) => {
      const under = names.filter((name) => chosen.every((value, i) => name[i] === value));
      const values = [...new Set(under.map((name) => name[at]))];
      chosen.push(fill(select, new Map(values.map((value) => [value, label[at](value)])), wanted[at]));
    });
    const [unit, kind, layer, head, points] =
      heads[names.findIndex((name) => name.every((value, i) => value === chosen[i]))];
    const step = units.length > 1 ? `${album.dataset.along} ${units[unit]}, ` : "";
    const where = `${step}${kinds[kind] ?? "layer"} ${layer}, head ${head}`;
    status.textContent = `${where}${show({ unit, kind, layer, head, points, where })}`;
    redraw(album);
  }

  for (const select of selects) {
    select.addEventListener("change", () => pick(selects.map((one) => one.value)));
  }
  for (const node of album.closest("figure").querySelectorAll(".maps .plot, .planes .plot")) {
    node.addEventListener("cell", ({ detail: { x, y, data, customdata } }) => {
      const [unit, before] = selects.map((one) => one.value);
      const [kind, layer, head] = customdata ?? [data.meta?.kind ?? before.split(" ")[0], y, x];
      const wanted = [unit, `${kind} ${layer}`, String(head)];
      if (names.some((name) => name.every((value, i) => value === wanted[i]))) pick(wanted);
      else status.textContent = `layer ${layer}, head ${head} has no picture`;
    });
  }
  pick(names[first]);
}
