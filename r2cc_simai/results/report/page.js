// Sorting, folding and filters of a report. The page is complete without them.
"use strict";
(() => {
  const FOLD = 15; // rows of a table that show before "Show all"
  const FACETS = ["scenario", "cluster", "strategy", "backend"];
  const DASH = "–";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Numbers with their units -------------------------------------------------------------------------------------

  const SCALE = { s: 1, ms: 1e-3, "µs": 1e-6, min: 60, h: 3600 };
  ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].forEach((unit, power) => { SCALE[unit] = 1024 ** power; });
  ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"].forEach((unit, power) => { SCALE[unit] = 1000 ** power; });
  const NUMBER = /^([+−±-]?)([\d,]*\.?\d+)\s*([^\d\s]\S*)?$/;
  const FRACTION = /^(\d+)\/(\d+)$/;

  // The value of "2.028 s", "−0.25%", "314,618/s", "1/8" or "206,000×" (then as a percentage); NaN if it is none.
  function numberOf(text) {
    const part = FRACTION.exec(text);
    if (part) return part[1] / part[2];
    const found = NUMBER.exec(text);
    if (!found) return NaN;
    const value = Number(found[2].replaceAll(",", "")) * (found[1] === "−" || found[1] === "-" ? -1 : 1);
    return found[3] === "×" ? 100 * (value - 1) : value * (SCALE[found[3]] ?? 1);
  }

  // Text in natural order: "nic2" before "nic10", capitals as small letters.
  function compareTexts(a, b) {
    const left = a.toLowerCase().split(/(\d+)/);
    const right = b.toLowerCase().split(/(\d+)/);
    for (let i = 0; i < Math.min(left.length, right.length); i++) {
      if (left[i] === right[i]) continue;
      if (i % 2 && Number(left[i]) !== Number(right[i])) return Number(left[i]) - Number(right[i]);
      return left[i] < right[i] ? -1 : 1;
    }
    return left.length - right.length;
  }

  // Tables -------------------------------------------------------------------------------------------------------

  const textOf = (cell) => (cell?.firstChild ? cell.firstChild.textContent.trim() : "");
  const isEmpty = (text) => text === "" || text === DASH;

  function tableOf(box) {
    const table = box.querySelector("table");
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const rows = [...body.rows].map((row) => ({ row, cells: [...row.cells], words: row.textContent.toLowerCase() }));
    const t = { box, body, heads, rows, order: rows, section: box.closest("section"), shown: rows.length, open: false };
    t.facetColumn = Object.fromEntries(FACETS.map((f) => [f, heads.findIndex((h) => h.dataset.facet === f)]));
    heads.forEach((head, column) => addSorting(t, head, column));
    if (rows.length > FOLD) addFolding(t);
    return t;
  }

  function addSorting(t, head, column) {
    if (!head.textContent.trim()) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.title = "Sort";
    head.append(button);
    button.addEventListener("click", () => {
      const next = { ascending: "descending", descending: "" }[head.ariaSort] ?? "ascending";
      t.heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (next) head.setAttribute("aria-sort", next);
      t.order = next ? sorted(t.rows, column, next === "descending") : t.rows;
      t.body.append(...t.order.map((entry) => entry.row));
      fold(t);
    });
  }

  // Rows by one column: as numbers where all cells are, else as text; cells without a value come last.
  function sorted(rows, column, descending) {
    const keyed = rows.map((entry) => ({ entry, text: textOf(entry.cells[column]) }));
    const full = keyed.filter((item) => !isEmpty(item.text));
    full.forEach((item) => { item.number = numberOf(item.text); });
    const numeric = full.every((item) => !Number.isNaN(item.number));
    const compare = numeric ? (a, b) => a.number - b.number : (a, b) => compareTexts(a.text, b.text);
    full.sort((a, b) => (descending ? compare(b, a) : compare(a, b)));
    return [...full, ...keyed.filter((item) => isEmpty(item.text))].map((item) => item.entry);
  }

  function addFolding(t) {
    t.words = document.createElement("input");
    t.words.type = "search";
    t.words.placeholder = "Filter this table";
    t.words.setAttribute("aria-label", `Filter the table: ${t.box.querySelector(".caption").textContent}`);
    t.words.addEventListener("input", refresh);
    t.box.querySelector(".caption").after(t.words);
    t.more = document.createElement("button");
    t.more.type = "button";
    t.more.className = "more";
    t.more.addEventListener("click", () => {
      t.open = !t.open;
      fold(t);
    });
    t.box.append(t.more);
  }

  // Leaves the first rows of a long table in sight.
  function fold(t) {
    if (!t.more) return;
    let seen = 0;
    for (const { row } of t.order) {
      const shown = !row.classList.contains("out");
      row.classList.toggle("fold", shown && seen >= FOLD);
      seen += shown;
    }
    t.body.classList.toggle("folded", !t.open);
    t.more.hidden = t.shown <= FOLD;
    t.more.textContent = t.open ? `Show the first ${FOLD}` : `Show all ${t.shown}`;
    t.more.setAttribute("aria-expanded", String(t.open));
  }

  // Filters ------------------------------------------------------------------------------------------------------

  const form = document.getElementById("page-filter");
  const words = document.getElementById("page-words");
  const reset = document.getElementById("page-reset");
  const state = document.getElementById("page-state");
  const choices = document.getElementById("page-choices");
  const chips = all(".chip", form);
  const tables = all(".table").map(tableOf);
  const sections = all("main > section");

  const wordsIn = (input) => (input ? input.value.toLowerCase().split(/\s+/).filter(Boolean) : []);

  function chosen() {
    const sets = {};
    for (const chip of chips) {
      if (chip.ariaPressed !== "true") continue;
      const facet = chip.closest("fieldset").dataset.facet;
      (sets[facet] ??= new Set()).add(chip.dataset.value);
    }
    return Object.entries(sets);
  }

  const concerns = (element, [facet, values]) =>
    !(facet in element.dataset) || element.dataset[facet].split("|").some((value) => values.has(value));

  const valueOf = (cell) => cell.dataset.value ?? textOf(cell);

  function filterTable(t, picked, wanted) {
    const inside = picked.every((pick) => concerns(t.box, pick) && concerns(t.section, pick));
    const local = [...wanted, ...wordsIn(t.words)];
    const byColumn = picked.filter(([facet]) => t.facetColumn[facet] >= 0);
    t.shown = 0;
    for (const { row, cells, words: text } of t.rows) {
      const keep =
        inside &&
        byColumn.every(([facet, values]) => values.has(valueOf(cells[t.facetColumn[facet]]))) &&
        local.every((word) => text.includes(word));
      row.classList.toggle("out", !keep);
      t.shown += keep;
    }
    const columnsLeft = filterColumns(t, picked);
    const typing = t.words && t.words.value;
    t.box.classList.toggle("out", t.rows.length > 0 && ((!t.shown && !typing) || !columnsLeft));
    fold(t);
  }

  // Hides the columns of strategies that are not chosen; returns whether one is left.
  function filterColumns(t, picked) {
    const pick = picked.find(([facet]) => facet === "strategy");
    let own = 0;
    let left = 0;
    t.heads.forEach((head, column) => {
      if (!head.dataset.strategy) return;
      const out = pick !== undefined && !pick[1].has(head.dataset.strategy);
      own += 1;
      left += !out;
      [head, ...t.rows.map((entry) => entry.cells[column])].forEach((cell) => cell.classList.toggle("out", out));
    });
    return own === 0 || left > 0;
  }

  function refresh() {
    const picked = chosen();
    const wanted = wordsIn(words);
    tables.forEach((t) => filterTable(t, picked, wanted));
    for (const section of sections) {
      const own = tables.filter((t) => t.section === section && t.rows.length);
      const nothing = own.length > 0 && own.every((t) => t.box.classList.contains("out"));
      const empty = nothing || !picked.every((pick) => concerns(section, pick));
      section.classList.toggle("empty", empty);
      document.querySelector(`nav a[href="#${CSS.escape(section.id)}"]`)?.classList.toggle("away", empty);
    }
    const active = picked.length > 0 || wanted.length > 0;
    const shown = tables.reduce((sum, t) => sum + (t.box.classList.contains("out") ? 0 : t.shown), 0);
    const total = tables.reduce((sum, t) => sum + t.rows.length, 0);
    state.textContent = active ? `${shown} of ${total} table rows` : "";
    reset.hidden = !active;
  }

  words.addEventListener("input", refresh);
  form.addEventListener("submit", (event) => event.preventDefault());
  chips.forEach((chip) =>
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", String(chip.ariaPressed !== "true"));
      refresh();
    }),
  );
  choices?.addEventListener("click", () => {
    const facets = document.getElementById("page-facets");
    facets.hidden = !facets.hidden;
    choices.setAttribute("aria-expanded", String(!facets.hidden));
  });
  reset.addEventListener("click", () => {
    words.value = "";
    chips.forEach((chip) => chip.setAttribute("aria-pressed", "false"));
    refresh();
  });

  // Contents, and boxes that scroll ------------------------------------------------------------------------------

  const contents = document.querySelector(".contents");
  const narrow = matchMedia("(max-width: 1000px)");
  const setContents = () => { contents.open = !narrow.matches; };
  narrow.addEventListener("change", setContents);
  contents.addEventListener("click", (event) => {
    if (event.target.closest("a") && narrow.matches) contents.open = false;
  });

  // A box that scrolls sideways can be reached, and so scrolled, from the keyboard.
  function reachable() {
    for (const box of all(".wide")) {
      const label = box.parentElement.querySelector(".caption, figcaption").textContent;
      const scrolls = box.scrollWidth > box.clientWidth;
      Object.entries({ tabindex: "0", role: "region", "aria-label": label }).forEach(([name, value]) =>
        scrolls ? box.setAttribute(name, value) : box.removeAttribute(name),
      );
    }
  }
  addEventListener("resize", reachable);

  form.hidden = false;
  setContents();
  refresh();
  reachable();
})();
