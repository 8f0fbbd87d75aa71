// A sweep: all figures on a logarithmic or a linear axis of steps, and steps that are played.
const axis_ = document.querySelector("fieldset.axis");

// Where a place on one axis stands on the other.
function moved(x, { log, first }) {
  if (x === null || x === undefined) return x;
  return log ? first * (10 ** x - 1) : Math.log10(1 + x / first);
}

function onAxis(data, layout) {
  const wanted = axis_.querySelector("input:checked").value === "log";
  const { meta, shapes = [], annotations = [] } = layout;
  if (!meta?.other || meta.log === wanted) return;
  for (const one of data) one.x = one.x.map((x) => moved(x, meta));
  for (const one of [...shapes, ...annotations].filter(({ xref }) => xref === "x")) {
    for (const end of ["x", "x0", "x1"]) if (end in one) one[end] = moved(one[end], meta);
  }
  Object.assign(layout.xaxis, meta.other);
}

if (axis_) {
  changes.push(onAxis);
  axis_.addEventListener("change", () => redraw());
}

for (const player of all(".player")) {
  const [button, slider, output, scale] = all("button, input, output", player);
  const steps = player.closest(".clouds").querySelector("select[name=unit]");
  const isLast = () => steps.selectedIndex + 1 >= steps.options.length;
  let timer = null;

  function follow() {
    slider.value = steps.selectedIndex;
    output.textContent = `step ${steps.selectedOptions[0].textContent}`;
  }
  function go(index) {
    steps.selectedIndex = index;
    steps.dispatchEvent(new Event("change"));
    follow();
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    button.textContent = "Play";
  }
  function forward() {
    if (!isLast()) go(steps.selectedIndex + 1);
    if (isLast()) stop();
  }

  button.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (isLast()) go(0);
    button.textContent = "Pause";
    timer = setInterval(forward, 500);
  });
  slider.addEventListener("input", () => {
    stop();
    go(Number(slider.value));
  });
  scale.addEventListener("change", () => go(steps.selectedIndex));
  steps.closest(".pick").addEventListener("change", follow);
  follow();
}
