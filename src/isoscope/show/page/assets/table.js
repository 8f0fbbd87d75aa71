// The table sorts by the heading that is clicked; what has no value comes last either way.
function compare(a, b) {
  if (a.key === "" || b.key === "") return (a.key === "") - (b.key === "");
  return a.sign * (a.number ? Number(a.key) - Number(b.key) : a.key.localeCompare(b.key, "en"));
}

for (const heading of all("table.rows th")) {
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

// What is copied or kept are the rows that the filter leaves, as they stand: numbers with all their digits,
// and text that a spreadsheet would take for a formula behind a quote.
function cells(table) {
  const value = ({ dataset, textContent }) => dataset.key ?? textContent.trim().replace(/^[=+@\-]/, "'$&");
  const head = [...table.tHead.rows[0].cells].map(({ textContent }) => textContent.trim());
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  return [head, ...rows.map((row) => [...row.cells].map(value))];
}

const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const asCsv = (lines) => lines.map((line) => `${line.map(quoted).join(",")}\r\n`).join("");
const asTabs = (lines) =>
  lines.map((line) => line.map((text) => text.replaceAll(/\s+/g, " ")).join("\t")).join("\n");

// The filter leaves the rows in whose text every word occurs; numbers are not searched.
for (const tools of all(".tools")) {
  const table = tools.parentNode.querySelector("table.rows");
  const [words, copy, keep, status] = all("input, button, output", tools);
  const text = (row) => all("td:not(.number, [data-key])", row).map((cell) => cell.textContent).join(" ");
  const every = [...table.tBodies[0].rows].map((row) => [row, text(row).toLowerCase()]);
  words.addEventListener("input", () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const [row, own] of every) row.hidden = !wanted.every((word) => own.includes(word));
    const left = every.filter(([row]) => !row.hidden).length;
    status.textContent = wanted.length ? `${left} of ${every.length} rows` : "";
  });
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(asTabs(cells(table)));
      status.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(table);
      status.textContent = "the browser does not let a page copy: the table is selected, copy it by hand";
    }
  });
  keep.addEventListener("click", () => {
    const href = URL.createObjectURL(new Blob(["\ufeff", asCsv(cells(table))], { type: "text/csv" }));
    Object.assign(document.createElement("a"), { href, download: `${tools.dataset.name}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  });
}
