// The clouds of one head: pick unit, layer and head, and the three panels are filled with its points.
function mean(numbers) {
  return numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
}

function centre(x, y) {
  const at = [mean(x), mean(y)];
  const wide = Math.sqrt(mean(x.map((value, i) => (value - at[0]) ** 2 + (y[i] - at[1]) ** 2)));
  return { at, far: Math.hypot(...at), wide, angle: Math.atan2(at[1], at[0]) };
}

function seen(query, key) {
  if (Number.isNaN(query.far + key.far)) return "Of the queries or of the keys no point is a number.";
  const turn = Math.abs(query.angle - key.angle) * (180 / Math.PI);
  const apart = Math.round(Math.min(turn, 360 - turn));
  const far = ({ far, wide }) => `${digits(far)} from the origin and its cloud ${digits(wide)} wide`;
  return `The mean query is ${far(query)}, the mean key ${far(key)}; they lie ${apart}° apart.`;
}

function gallery(album) {
  const panels = [...album.querySelectorAll(".panel")].map((node) => ({
    plot: plots.find((one) => node.contains(one.node)),
    share: node.querySelector("h3 small"),
    caption: node.querySelector(".seen"),
    heading: node.querySelector("h3 span").textContent,
    spread: node.dataset.share,
  }));

  const held = JSON.parse(album.querySelector("script.points").textContent, (_, value) =>
    value?.letters ? unpacked(value)[0] : value,
  );

  // Where steps are played, the origin stays in the middle; with one scale for all, so does the scale.
  const player = album.querySelector(".player");
  function farthest(at, points, ...name) {
    const all = player.querySelector("input[type=checkbox]").checked;
    const own = held.heads.filter((head) => name.every((part, i) => head[i + 1] === part));
    const shown = all ? own.map((head) => head[4][at]) : [points[at]];
    return Math.max(...shown.flatMap((panel) => panel.slice(0, 4).flat().map(Math.abs)));
  }

  function show({ points, where, kind, layer, head }) {
    panels.forEach(({ plot, share, caption, heading, spread }, at) => {
      const [[qx, qy], [kx, ky]] = [whole(points[at].slice(0, 2)), whole(points[at].slice(2, 4))];
      const [[first], [second]] = points[at].slice(4);
      const figure = JSON.parse(plot.text);
      const [query, key] = [centre(qx, qy), centre(kx, ky)];
      const drawn = [[qx, qy], [kx, ky], ...[query, key].map((one) => one.at.map((x) => [x]))];
      drawn.forEach(([x, y], i) => Object.assign(figure.data[i], { x, y }));
      if (player) {
        const far = 1.05 * farthest(at, points, kind, layer, head);
        for (const axis of [figure.layout.xaxis, figure.layout.yaxis]) axis.range = [-far, far];
      }
      plot.text = JSON.stringify(figure);
      share.textContent = first === null ? "" : `${digits(100 * (first + second))} % of ${spread}`;
      caption.textContent = seen(query, key);
      plot.node.ariaLabel = `${heading}, ${where}. ${caption.textContent} ${share.textContent}`;
    });
    const [[qx], [kx]] = [whole(points[0].slice(0, 2)), whole(points[0].slice(2, 4))];
    return `: ${qx.length} queries and ${kx.length} keys`;
  }

  picker(album, held, show);
}

for (const album of document.querySelectorAll(".clouds")) gallery(album);
