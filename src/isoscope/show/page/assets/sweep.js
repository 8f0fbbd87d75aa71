// A sweep: all figures on a logarithmic or a linear axis of steps, and steps that are played.
const axis_ = document.querySelector("fieldset.axis");

// Where a place on one axis stands on the other.
function moved(x, { log, first }) {
  if (x === null || x === undefined) return x;
  return log ? first * (10 ** x - 1) : Math.log10(1 + x / first);
}

function onAxis(data, layout) {
  const wanted = axis_.querySelector("input:checked").value === "log";
  const { meta } = layout;
  if (!meta?.other || meta.log === wanted) return;
  for (const one of data) one.x = one.x.map((x) => moved(x, meta));
  for (const shape of layout.shapes ?? []) {
    if (shape.xref === "x") [shape.x0, shape.x1] = [moved(shape.x0, meta), moved(shape.x1, meta)];
  }
  for (const note of layout.annotations ?? []) if (note.xref === "x") note.x = moved(note.x, meta);
  Object.assign(layout.xaxis, meta.other);
}

if (axis_) {
  changes.push(onAxis);
  axis_.addEventListener("change", () => redraw());
}

for (const player of document.querySelectorAll(".player")) {
  const [button, slider, output, whole] = ["button", "[type=range]", "output", "[type=checkbox]"].map((one) =>
    player.querySelector(one),
  );
  const steps = player.closest(".clouds").querySelector("select[name=unit]");
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
    if (steps.selectedIndex + 1 < steps.options.length) go(steps.selectedIndex + 1);
    if (steps.selectedIndex + 1 >= steps.options.length) stop();
  }

  button.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (steps.selectedIndex + 1 >= steps.options.length) go(0);
    button.textContent = "Pause";
    timer = setInterval(forward, 500);
  });
  slider.addEventListener("input", () => {
    stop();
    go(Number(slider.value));
  });
  whole.addEventListener("change", () => go(steps.selectedIndex));
  steps.closest(".pick").addEventListener("change", follow);
  follow();
}
