// The weights of one head: its eigenvalues, where signal passes by them, and where it attends.
const rightOf0 = (x) => Math.round((100 * x.filter((value) => value > 0).length) / x.length);

const near0 = (x) => digits(Math.abs(x) < 5e-4 ? 0 : x);

function spoken(name, [x, y]) {
  if (name === "spectrum") {
    const largest = digits(Math.max(...x.map((value, i) => Math.hypot(value, y[i]))));
    return `Of ${x.length} eigenvalues ${rightOf0(x)} % lie right of 0; the largest has size ${largest}.`;
  }
  const [what, unit] = name === "predicted" ? ["ρ", ""] : ["Attention", " times an even one"];
  const [low, high] = [Math.min(...y), Math.max(...y)];
  if (near0(low) === near0(high)) return `${what} is ${near0(high)}${unit} everywhere.`;
  const at = (value) => digits(x[y.indexOf(value)]);
  return `${what} is highest, ${near0(high)}${unit}, at ${at(high)} and lowest, ${near0(low)}, at ${at(low)}.`;
}

// The eigenvalues of this head fill the panel, as does its measured attention; what is far larger is cut off.
function around({ xaxis, yaxis }, [x, y]) {
  const far = 1.2 * Math.max(...x.map((value, i) => Math.hypot(value, y[i]))) || 1;
  for (const axis of [xaxis, yaxis]) Object.assign(axis, { range: [-far, far], autorange: false });
}

// How many eigenvalues of other heads are cut off: equal scales make one axis longer, by the panel's width.
function outside({ data: [{ x, y }], _fullLayout: { xaxis, yaxis } }) {
  const cut = (value, [low, high]) => value < low || value > high;
  const number = x.filter((value, i) => cut(value, xaxis.range) || cut(y[i], yaxis.range)).length;
  return number ? ` ${number} of ${x.length} of the other heads lie outside.` : "";
}

function weighed(album) {
  const held = JSON.parse(album.querySelector("script.points").textContent);
  const panels = [...album.querySelectorAll(".panel")].map((node) => ({
    plot: plots.find((one) => node.contains(one.node)),
    name: node.dataset.picture,
    series: node.dataset.series.split(" "),
    caption: node.querySelector(".seen"),
    heading: node.querySelector("h3 span").textContent,
  }));
  const section = album.closest("figure");
  const planes = plots.filter(({ node }) => section.querySelector(".planes")?.contains(node));

  // The layer's other heads, for the eigenvalues.
  function others({ unit, kind, layer, head }) {
    const beside = held.heads.filter(
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
    }
    for (const { node } of planes) redraw(node);
  }

  function show(one) {
    for (const { plot, name, series, caption, heading } of panels) {
      const figure = JSON.parse(plot.text);
      const own = (name === "spectrum" ? ["eigenvalue"] : series).map((s) => one.points[s] && whole(one.points[s]));
      const lines = name === "spectrum" ? [others(one), ...own] : own;
      lines.forEach((line, i) => {
        const [x, y] = line ?? [[], []];
        Object.assign(figure.data[i], { x, y });
      });
      const main = name === "spectrum" ? lines[1] : lines[0];
      if (name === "spectrum" && main?.[0].length) around(figure.layout, main);
      if (name === "measured" && main) figure.layout.yaxis.range = [0, 1.25 * Math.max(1.2, ...main[1])];
      plot.text = JSON.stringify(figure);
      const told = main?.[0].length ? spoken(name, main) : "This head has no picture here.";
      const tell = (more = "") => {
        caption.textContent = told + more;
        plot.node.ariaLabel = `${heading}, ${one.where}. ${caption.textContent}`;
      };
      tell();
      if (name === "spectrum") plot.drawn = () => tell(main?.[0].length ? outside(plot.node) : "");
    }
    ring(one);
    return "";
  }

  picker(album, held, show);
}

for (const album of document.querySelectorAll(".weighed")) weighed(album);
