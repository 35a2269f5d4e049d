// Puts a box above each long table that shows only the rows with the typed words.

const LONG = 16; // rows from which on a table has a box

function filterBox(table, rows) {
  const box = document.createElement("input");
  Object.assign(box, { type: "search", className: "filter", placeholder: `Filter ${rows.length} rows` });
  box.setAttribute("aria-label", "Filter the rows of the table below");
  const count = document.createElement("span");
  count.className = "filter-count";
  const texts = rows.map((row) => row.textContent.toLowerCase());
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = texts.map((text) => words.every((word) => text.includes(word)));
    rows.forEach((row, index) => { row.hidden = !shown[index]; });
    count.textContent = words.length ? `${shown.filter(Boolean).length} of ${rows.length}` : "";
  });
  const place = document.createElement("div");
  place.append(box, count);
  const home = table.closest(".md-typeset__scrollwrap") ?? table;
  home.before(place);
}

for (const table of document.querySelectorAll(".md-typeset table")) {
  const rows = [...(table.tBodies[0]?.rows ?? [])];
  if (rows.length >= LONG) filterBox(table, rows);
}
