"use strict";

// Asks for the version of the page; a newer one is loaded, with what was chosen and where one was kept.
{
  const KEPT = "isoscope watch";
  const bar = document.getElementById("watch");
  const status = bar.querySelector("[role=status]");
  const follow = bar.querySelector("input");
  const all = (selector) => [...document.querySelectorAll(selector)];

  // A name that is the same on the next page: where it stands, what it is, and its words unless they change.
  function called(node) {
    const worded = ["A", "BUTTON", "SUMMARY"].includes(node.tagName) && !node.parentNode.id;
    const words = worded ? node.textContent : node.id ? "" : (node.querySelector?.("summary")?.textContent ?? "");
    const value = node.type === "radio" ? node.value : "";
    return [node.closest("[id]")?.id, node.tagName, node.name, node.type, value, words].join(" ");
  }

  // What can be chosen on a page; a slider follows a list, and is moved by it.
  const chosen = () => all("select, input:not([type=range]), details");
  const heading = () => document.querySelector("th[aria-sort=ascending], th[aria-sort=descending]");

  function read(node) {
    if (node.tagName === "DETAILS") return node.open;
    if (node.tagName === "SELECT") return node.selectedOptions[0]?.textContent;
    return ["radio", "checkbox"].includes(node.type) ? node.checked : node.value;
  }

  function write(node, value) {
    if (read(node) === value) return;
    if (node.tagName === "DETAILS") return void (node.open = value);
    if (node.tagName === "SELECT") {
      const at = [...node.options].findIndex((option) => option.textContent === value);
      if (at < 0) return;
      node.selectedIndex = at;
    } else if (typeof value === "boolean") node.checked = value;
    else node.value = value;
    for (const name of ["input", "change"]) node.dispatchEvent(new Event(name, { bubbles: true }));
  }

  const untouched = new Map(chosen().map((node) => [called(node), read(node)]));

  // What differs from how the page came is kept; what does not follows the newest rows.
  function keep() {
    const differ = chosen().filter((node) => node.open || read(node) !== untouched.get(called(node)));
    const above = all("main > [id]").filter((node) => node.getBoundingClientRect().top <= 1);
    const anchor = above[above.length - 1];
    const sorted = heading();
    const kept = {
      chosen: differ.map((node) => [called(node), read(node)]),
      anchor: anchor?.id,
      top: anchor ? anchor.getBoundingClientRect().top : -window.scrollY,
      scrolled: document.querySelector(".scroll[role=region]")?.scrollTop,
      sorted: sorted && [sorted.textContent, sorted.ariaSort],
      focus: document.activeElement === document.body ? null : called(document.activeElement),
      hash: location.hash,
    };
    sessionStorage.setItem(KEPT, JSON.stringify(kept));
    // Else the browser goes to the place in the address, at a moment of its own, and away from this one.
    history.replaceState(null, "", location.pathname);
  }

  function restore(kept) {
    for (const [name, value] of kept.chosen) {
      const node = chosen().find((one) => called(one) === name);
      if (node && !(node.type === "radio" && !value)) write(node, value);
    }
    const sorted = kept.sorted && all("th").find((one) => one.textContent === kept.sorted[0]);
    for (let turn = 0; sorted && turn < 2 && sorted.ariaSort !== kept.sorted[1]; turn += 1) {
      sorted.querySelector("button").click();
    }
    const table = document.querySelector(".scroll[role=region]");
    if (table) table.scrollTop = kept.scrolled ?? 0;
    all("a, button, select, input, summary").find((one) => called(one) === kept.focus)?.focus({ preventScroll: true });
    const anchor = kept.anchor ? document.getElementById(kept.anchor) : document.documentElement;
    const top = anchor ? anchor.getBoundingClientRect().top - kept.top : 0;
    window.scrollBy({ top, behavior: "instant" });
    if (kept.hash) history.replaceState(null, "", kept.hash);
  }

  // Nobody is interrupted: not while a list is open, a key or a button is pressed, or steps are played.
  let touched = -Infinity;
  for (const name of ["pointerdown", "pointerup", "keydown", "wheel", "touchmove"]) {
    window.addEventListener(name, () => (touched = performance.now()), { passive: true });
  }
  function busy() {
    const quiet = performance.now() - touched;
    const playing = all(".player button").some((button) => button.textContent === "Pause");
    return playing || document.hidden || quiet < (document.activeElement?.tagName === "SELECT" ? 4000 : 800);
  }

  function tell(text) {
    if (status.textContent !== text) status.textContent = text;
  }

  // One question at a time; none while nobody sees the page.
  let timer = null;
  let asking = false;
  async function ask() {
    clearTimeout(timer);
    if (asking || document.hidden) return;
    asking = true;
    let pause = 500;
    try {
      const answer = await fetch("version", { cache: "no-store", signal: AbortSignal.timeout(20000) });
      if (!answer.ok) throw new Error(answer.statusText);
      const { version, said } = await answer.json();
      const newer = version !== bar.dataset.version;
      tell(newer && !follow.checked ? `newer rows are there, ${said}` : said);
      if (newer && follow.checked && !busy()) {
        keep();
        location.reload();
        return;
      }
    } catch {
      tell("isoscope watch has stopped; this is what it showed last");
      pause = 5000;
    }
    asking = false;
    timer = setTimeout(ask, pause);
  }

  history.scrollRestoration = "manual";
  const kept = sessionStorage.getItem(KEPT);
  sessionStorage.removeItem(KEPT);
  window.addEventListener("load", () => {
    if (kept) requestAnimationFrame(() => restore(JSON.parse(kept)));
    ask();
  });
  document.addEventListener("visibilitychange", ask);
}
