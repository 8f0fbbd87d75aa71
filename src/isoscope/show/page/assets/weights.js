// The weights of one head: its eigenvalues, where signal passes by them, and where it attends.
const near0 = (x) => digits(Math.abs(x) < 5e-4 ? 0 : x);
const largest = ([x, y]) => Math.max(...x.map((value, i) => Math.hypot(value, y[i])));

function spoken(name, [x, y]) {
  if (name === "spectrum") {
    const right = Math.round((100 * x.filter((value) => value > 0).length) / x.length);
    const size = digits(largest([x, y]));
    return `Of ${x.length} eigenvalues ${right} % lie right of 0; the largest has size ${size}.`;
  }
  const [what, unit] = name === "predicted" ? ["ρ", ""] : ["Attention", " times an even one"];
  const [low, high] = [Math.min(...y), Math.max(...y)];
  if (near0(low) === near0(high)) return `${what} is ${near0(high)}${unit} everywhere.`;
  const at = (value) => digits(x[y.indexOf(value)]);
  return `${what} is highest, ${near0(high)}${unit}, at ${at(high)} and lowest, ${near0(low)}, at ${at(low)}.`;
}

// The eigenvalues of this head fill the panel, as does its measured attention; what is far larger is cut off.
function around(name, main, { xaxis, yaxis }) {
  if (name === "spectrum" && main?.[0].length) {
    const far = 1.2 * largest(main) || 1;
    for (const axis of [xaxis, yaxis]) Object.assign(axis, { range: [-far, far], autorange: false });
  }
  if (name === "measured" && main) yaxis.range = [0, 1.25 * Math.max(1.2, ...main[1])];
}

// How many eigenvalues of other heads are cut off: equal scales make one axis longer, by the panel's width.
function outside({ data: [{ x, y }], _fullLayout: { xaxis, yaxis } }) {
  const cut = (value, [low, high]) => value < low || value > high;
  const number = x.filter((value, i) => cut(value, xaxis.range) || cut(y[i], yaxis.range)).length;
  return number ? ` ${number} of ${x.length} of the other heads lie outside.` : "";
}

function weighed(album, { heads }, panels) {
  const planes = plots.filter(({ node }) => album.closest("figure").querySelector(".planes")?.contains(node));

  // The eigenvalues of the layer's other heads.
  function others({ unit, kind, layer, head }) {
    const beside = heads.filter(
      ([u, k, l, h, series]) => u === unit && k === kind && l === layer && h !== head && series.eigenvalue,
    );
    return whole([0, 1].map((axis) => beside.flatMap((one) => one[4].eigenvalue[axis])));
  }

  function ring({ kind, layer, head }) {
    for (const plane of planes) {
      const figure = JSON.parse(plane.text);
      const chosen = figure.data[figure.data.length - 1];
      [chosen.x, chosen.y] = [[null], [null]];
      for (const { x, y, customdata } of figure.data.slice(0, -1)) {
        const at = customdata.findIndex(([k, l, h]) => k === kind && l === layer && h === head);
        if (at >= 0) [chosen.x, chosen.y] = [[x[at]], [y[at]]];
      }
      plane.text = JSON.stringify(figure);
      redraw(plane.node);
    }
  }

  return (one) => {
    for (const panel of panels) {
      const [name, { plot }] = [panel.picture, panel];
      const names = name === "spectrum" ? ["eigenvalue"] : panel.series.split(" ");
      const own = names.map((series) => one.points[series] && whole(one.points[series]));
      const lines = name === "spectrum" ? [others(one), ...own] : own;
      const [main] = own;
      fill(panel, lines.map((line) => line ?? [[], []]), (layout) => around(name, main, layout));
      const text = main?.[0].length ? spoken(name, main) : "This head has no picture here.";
      describe(panel, one.where, text);
      if (name !== "spectrum") continue;
      plot.drawn = () => describe(panel, one.where, text + (main?.[0].length ? outside(plot.node) : ""));
    }
    ring(one);
    return "";
  };
}

for (const album of all(".weighed")) picker(album, weighed);
