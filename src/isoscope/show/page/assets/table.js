"use strict";

// The table sorts by the heading that is clicked; what has no value comes last either way.
function compare(a, b) {
  if (a.key === "" || b.key === "") return (a.key === "") - (b.key === "");
  return a.sign * (a.number ? Number(a.key) - Number(b.key) : a.key.localeCompare(b.key, "en"));
}

for (const heading of document.querySelectorAll("table.rows th")) {
  heading.querySelector("button").addEventListener("click", () => {
    const sign = heading.ariaSort === "ascending" ? -1 : 1;
    for (const other of heading.parentNode.children) other.ariaSort = "none";
    heading.ariaSort = sign > 0 ? "ascending" : "descending";
    const body = heading.closest("table").tBodies[0];
    const lines = [...body.rows].map((row) => {
      const { dataset, textContent } = row.cells[heading.cellIndex];
      const number = dataset.key ?? dataset.place;
      return { row, key: number ?? textContent, sign, number: number !== undefined };
    });
    body.append(...lines.sort(compare).map(({ row }) => row));
  });
}

// The filter leaves the rows in whose text every word occurs; numbers are not searched. What is copied or kept is what is left, as it stands:
// numbers with all their digits, and text that a spreadsheet would take for a formula behind a quote.
function told(cell) {
  if (cell.dataset.key !== undefined) return cell.dataset.key;
  const text = cell.textContent.trim();
  return /^[=+@\-]/.test(text) ? `'${text}` : text;
}

function lines(table) {
  const head = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  return [head, ...rows.map((row) => [...row.cells].map(told))];
}

function asCsv(cells) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return cells.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
}

const asTabs = (cells) => cells.map((line) => line.map((text) => text.replaceAll(/\s+/g, " ")).join("\t")).join("\n");

for (const tools of document.querySelectorAll(".tools")) {
  const table = tools.parentNode.querySelector("table.rows");
  const [copy, keep] = tools.querySelectorAll("button");
  const words = tools.querySelector("input");
  const said = tools.querySelector("output");
  const text = (row) => [...row.querySelectorAll("td:not(.number, [data-key])")].map((cell) => cell.textContent).join(" ");
  const every = [...table.tBodies[0].rows].map((row) => [row, text(row).toLowerCase()]);
  words.addEventListener("input", () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const [row, own] of every) row.hidden = !wanted.every((word) => own.includes(word));
    const left = every.filter(([row]) => !row.hidden).length;
    said.textContent = wanted.length ? `${left} of ${every.length} rows` : "";
  });
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(asTabs(lines(table)));
      said.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(table);
      said.textContent = "the browser does not let a page copy: the table is selected, copy it by hand";
    }
  });
  keep.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(["\ufeff", asCsv(lines(table))], { type: "text/csv" }));
    link.download = `${tools.dataset.name}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}
