// The clouds of one head: its queries and keys with their means, on three kinds of axes.
const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

function centre([x, y]) {
  const at = [mean(x), mean(y)];
  const wide = Math.sqrt(mean(x.map((value, i) => (value - at[0]) ** 2 + (y[i] - at[1]) ** 2)));
  return { at, far: Math.hypot(...at), wide, angle: Math.atan2(at[1], at[0]) };
}

function clouded(query, key) {
  if (Number.isNaN(query.far + key.far)) return "Of the queries or of the keys no point is a number.";
  const turn = Math.abs(query.angle - key.angle) * (180 / Math.PI);
  const apart = Math.round(Math.min(turn, 360 - turn));
  const far = ({ far, wide }) => `${digits(far)} from the origin and its cloud ${digits(wide)} wide`;
  return `The mean query is ${far(query)}, the mean key ${far(key)}; they lie ${apart}° apart.`;
}

function gallery(album, { heads }, panels) {
  const scale = album.querySelector(".player [type=checkbox]");
  const queriesAndKeys = (points) => [whole(points.slice(0, 2)), whole(points.slice(2, 4))];

  // Where steps are played, the origin stays in the middle; with one scale for all, so does the scale.
  function farthest(at, points, ...name) {
    const own = heads.filter((head) => name.every((part, i) => head[i + 1] === part));
    const seen = scale.checked ? own.map((head) => head[4][at]) : [points[at]];
    return Math.max(...seen.flatMap((panel) => panel.slice(0, 4).flat().map(Math.abs)));
  }

  return ({ points, where, kind, layer, head }) => {
    panels.forEach((panel, at) => {
      const clouds = queriesAndKeys(points[at]);
      const centres = clouds.map(centre);
      const means = centres.map((one) => one.at.map((x) => [x]));
      fill(panel, [...clouds, ...means], ({ xaxis, yaxis }) => {
        if (!scale) return;
        const far = 1.05 * farthest(at, points, kind, layer, head);
        xaxis.range = yaxis.range = [-far, far];
      });
      const [[first], [second]] = points[at].slice(4);
      const spread = at === 1 ? "the spread" : "the energy";
      panel.remark.textContent = first === null ? "" : `${digits(100 * (first + second))} % of ${spread}`;
      describe(panel, where, clouded(...centres), panel.remark.textContent);
    });
    const [queries, keys] = queriesAndKeys(points[0]).map(([x]) => x.length);
    return `: ${queries} queries and ${keys} keys`;
  };
}

for (const album of all(".clouds")) picker(album, gallery);
