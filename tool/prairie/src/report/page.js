"use strict";
// Tables are sorted by a click on a column's head; figures by what they are worth, not by letters.
(() => {
  const units = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, B: 1, KiB: 1024, MiB: 1048576, GiB: 1073741824,
    "B·s": 1, "kB·s": 1e3, "MB·s": 1e6, "GB·s": 1e9, k: 1e3, M: 1e6, G: 1e9 };
  const worth = (text) => {
    const found = /^[^\d+-]*([+-]?\d[\d.]*) ?([A-Za-zµ·]*)/.exec(text.trim());
    return found ? parseFloat(found[1]) * (units[found[2]] || 1) : null;
  };
  const sort = (head) => {
    const table = head.closest("table"), body = table.tBodies[0], column = head.cellIndex;
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const isText = head.classList.contains("text");
    const key = (row) => { const text = row.cells[column].textContent; return isText ? text : worth(text); };
    const rows = [...body.rows].map((row) => [key(row), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      const order = isText ? a.localeCompare(b) : a - b;
      return up ? order : -order;
    });
    for (const [, row] of rows) body.append(row);
  };
  for (const head of document.querySelectorAll("table.sortable th")) {
    head.tabIndex = 0;
    head.addEventListener("click", () => sort(head));
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(head); });
  }
  for (const button of document.querySelectorAll("button[data-from]")) {
    button.addEventListener("click", () => {
      const held = document.getElementById(button.dataset.from), isText = held.type !== "application/json";
      const text = isText ? JSON.parse(held.textContent) : held.textContent;
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: button.dataset.type }));
      link.download = button.dataset.name;
      link.click();
    });
  }
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  document.getElementById("theme").addEventListener("click", () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
    root.dataset.theme = isDark ? "light" : "dark";
  });
})();
