"use strict";
// The page is complete without this script. It adds: sorting, filters and CSV of tables, a ranking
// of a table's visible rows, values of marks under the pointer, and the switch of the theme.

(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const COLOURS = ["#2f86c5", "#d9680f", "#0f9e78", "#c274a4", "#b98900", "#4a9bc9"];
  const FEW_ROWS = 10; // fewer rows than this need no filter
  const MOST_LEVELS = 15; // a column with more distinct texts gets no filter
  const LONGEST_LEVEL = 60; // longer texts are sentences, which the search finds
  const MOST_ROWS = 25; // rows of a table before its button for all of them, as in page.css
  const MOST_MARKS = 60; // more rows than this are no longer legible in one ranking
  const WIDE = 4; // largest over smallest value above which an axis is logarithmic
  const NOT_RANKED = new Set(["N", "rounds", "samples", "pairs", "jobs", "blocks", "threads"]);
  const LETTER = 6.8; // px, the usual width of one in a ranking
  const WIDE_SCREEN = matchMedia("(min-width: 60rem)");
  const byWords = new Intl.Collator("en", { numeric: true });

  function make(tag, attributes = {}, ...children) {
    return fill(document.createElement(tag), attributes, children);
  }

  function draw(tag, attributes = {}, ...children) {
    return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  }

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  // The text in lines that fit, broken after commas and spaces, else anywhere.
  function lines(text, width) {
    const room = Math.max(8, Math.floor(width / LETTER));
    const found = [""];
    for (const word of text.match(new RegExp(`\\S{1,${room}}\\s*`, "g")) ?? []) {
      if (found.at(-1) && (found.at(-1) + word).trimEnd().length > room) found.push("");
      found[found.length - 1] += word;
    }
    return found.map((line) => line.trimEnd());
  }

  function choice(label, texts, changed) {
    const options = texts.map((text) => make("option", { value: text }, text || "all"));
    const select = make("select", {}, ...options);
    select.addEventListener("change", changed);
    return { select, label: make("label", {}, label, select) };
  }

  // Tables: what they hold, sorted and filtered.

  class Grid {
    filters = []; // a row is visible if all of them say so
    listeners = []; // called after each filtering
    constructor(box) {
      this.box = box;
      this.body = box.querySelector("tbody");
      this.columns = all("thead th", box).map((head, index) => ({
        head, index, name: head.textContent, kind: head.dataset.kind,
        names: head.dataset.names.split("|"),
      }));
      this.rows = all("tr", this.body).map((row) => ({
        row,
        link: row.querySelector("a")?.getAttribute("href"),
        cells: [...row.cells].map((cell) => ({
          text: cell.textContent,
          numbers: (cell.dataset.v ?? "").split(" ").map((v) => (v === "" ? NaN : Number(v))),
        })),
      }));
    }

    get visible() {
      return this.rows.filter((row) => !row.row.hidden);
    }

    // The distinct texts of a column, in order.
    levels(column, rows = this.rows) {
      const found = new Map(rows.map((row) => [row.cells[column.index].text, row.cells[column.index]]));
      return [...found.values()].sort((one, two) => compare(one, two, 1)).map((cell) => cell.text);
    }

    sort(column) {
      const down = column.head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of this.columns) other.head.removeAttribute("aria-sort");
      column.head.setAttribute("aria-sort", down === 1 ? "ascending" : "descending");
      const key = (row) => row.cells[column.index];
      this.rows.sort((one, two) => compare(key(one), key(two), down));
      this.body.append(...this.rows.map((row) => row.row));
    }

    filter() {
      for (const row of this.rows) row.row.hidden = !this.filters.every((fits) => fits(row));
      for (const listener of this.listeners) listener();
    }

    csv() {
      const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      const line = (row) => this.columns.flatMap(({ index, names, kind }) => {
        const { text, numbers } = row.cells[index];
        const words = kind === "text" ? [text] : numbers.map((v) => (Number.isNaN(v) ? "" : `${v}`));
        return names.map((_, i) => quoted(words[i] ?? ""));
      });
      const heads = this.columns.flatMap((column) => column.names.map(quoted));
      return [heads, ...this.visible.map(line)].map((words) => words.join(",")).join("\n") + "\n";
    }
  }

  const UNITS = { "": 1, "%": 1, ns: 1e-9, µs: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, days: 86400, years: 31557600 };

  // What a cell is sorted by: its number, or that of a text such as "4.68 days".
  function size({ numbers, text }) {
    const [, number, unit] = /^([+-]?[\d.,]+(?:e[+-]?\d+)?) ?([a-zµ%]*)$/.exec(text) ?? [];
    return Number.isNaN(numbers[0]) ? Number(number?.replaceAll(",", "")) * UNITS[unit] : numbers[0];
  }

  // Empty cells come last, whichever way the column is sorted.
  function compare(one, two, down) {
    const [a, b] = [size(one), size(two)];
    if (Number.isNaN(a) && Number.isNaN(b)) return down * byWords.compare(one.text, two.text);
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) ? 1 : -1;
    return down * (a - b);
  }

  function addSorting(grid) {
    for (const column of grid.columns) {
      const button = make("button", { type: "button" }, ...column.head.childNodes);
      button.addEventListener("click", () => grid.sort(column));
      column.head.replaceChildren(button);
    }
  }

  // Sizes and quantities one at a time, first those of the first row, and without their column.
  function switchOf(grid, column, select) {
    if (column.name !== "N" && column.name !== "quantity") return;
    select.value = grid.rows[0].cells[column.index].text;
    const cells = [column.head, ...grid.rows.map(({ row }) => row.cells[column.index])];
    grid.listeners.push(() => cells.forEach((cell) => cell.toggleAttribute("data-off", select.value !== "")));
  }

  // Long tables begin short.
  function addRest(grid) {
    if (grid.rows.length <= MOST_ROWS) return;
    const more = make("button", { type: "button", class: "all" });
    grid.box.classList.add("short");
    more.addEventListener("click", () => { grid.box.classList.remove("short"); more.remove(); });
    grid.listeners.push(() => {
      more.textContent = `All ${grid.visible.length} rows`;
      more.hidden = grid.visible.length <= MOST_ROWS;
    });
    grid.box.querySelector(".scroll").after(more);
  }

  function addTools(grid) {
    const tools = make("div", { class: "tools" });
    const count = make("output");
    const changes = "switch" in grid.box.dataset && !("chart" in grid.box.dataset);
    for (const column of grid.rows.length < FEW_ROWS ? [] : grid.columns) {
      if (column.kind !== "text" && column.name !== "N") continue;
      if (changes && column.name !== "N" && column.name !== "quantity") continue;
      const levels = grid.levels(column);
      if (levels.length < 2 || levels.length > MOST_LEVELS || levels.length === grid.rows.length) continue;
      if (levels.some((level) => level.length > LONGEST_LEVEL)) continue;
      const { select, label } = choice(column.name, ["", ...levels], () => grid.filter());
      grid.filters.push((row) => !select.value || row.cells[column.index].text === select.value);
      tools.append(label);
      if ("switch" in grid.box.dataset) switchOf(grid, column, select);
    }
    const search = make("input", { type: "search" });
    search.addEventListener("input", () => grid.filter());
    grid.filters.push((row) => row.row.textContent.toLowerCase().includes(search.value.toLowerCase()));
    const copy = make("button", { type: "button" }, "Copy as CSV");
    copy.addEventListener("click", async () => {
      const copied = navigator.clipboard?.writeText(grid.csv()) ?? Promise.reject();
      copy.textContent = await copied.then(() => "Copied", () => "Not allowed here");
      setTimeout(() => (copy.textContent = "Copy as CSV"), 1500);
    });
    grid.listeners.push(() => (count.textContent = `${grid.visible.length} of ${grid.rows.length} rows`));
    grid.filter();
    if (grid.rows.length >= FEW_ROWS && !changes) tools.append(make("label", {}, "contains", search));
    tools.append(copy, count);
    const folded = make("details", { class: "filters" }, make("summary", {}, "Filter and copy"), tools);
    folded.open = WIDE_SCREEN.matches;
    grid.box.prepend(folded);
  }

  // The ranking: the visible rows of a table as dots with intervals, one quantity and size at a time.

  class Ranking {
    constructor(grid) {
      this.grid = grid;
      this.quantities = grid.columns.filter((column) => column.kind !== "text"
        && !NOT_RANKED.has(column.name)
        && grid.rows.filter((row) => !Number.isNaN(row.cells[column.index].numbers[0])).length > 1);
      // Rows of several sizes, or effects on several quantities, are never in one ranking.
      this.parts = grid.columns.filter((column) => column.name === "N" || column.name === "quantity");
      this.words = grid.columns.filter((column) => column.kind === "text" && column.name !== "status");
    }

    build() {
      if (!this.quantities.length || this.grid.rows.length < 3) return;
      const redraw = () => this.draw();
      const named = this.parts.some((column) => column.name === "quantity") ? "value" : "quantity";
      this.quantity = choice(named, this.quantities.map((column) => column.name), redraw);
      this.parts = this.parts.map((column) => {
        const levels = this.grid.levels(column);
        const part = { column, levels, ...choice(column.name, levels, redraw) };
        part.select.value = column.kind === "text" ? levels[0] : levels.at(-1);
        return part;
      });
      const shown = [{ levels: this.quantities, ...this.quantity }, ...this.parts];
      const tools = make("div", { class: "tools" },
        ...shown.filter(({ levels }) => levels.length > 1).map(({ label }) => label));
      this.place = make("div");
      this.box = make("details", { class: "chart" },
        make("summary", {}, "Ranking of these rows"), tools, this.place);
      this.box.addEventListener("toggle", redraw);
      this.box.open = WIDE_SCREEN.matches && !document.querySelector(".hero")
        && this.grid.rows.some((row) => row.link);
      this.grid.box.querySelector(".scroll").before(this.box);
      this.grid.listeners.push(redraw);
      new ResizeObserver(() => this.place.clientWidth !== this.width && this.draw()).observe(this.place);
    }

    // Rows of the chosen parts: the filter of the table decides where it leaves only others.
    chosen(column) {
      let found = this.grid.visible.filter((row) => !Number.isNaN(row.cells[column.index].numbers[0]));
      for (const part of this.parts) {
        const left = this.grid.levels(part.column, found);
        if (!left.includes(part.select.value) && left.length) part.select.value = left.at(-1);
        found = found.filter((row) => row.cells[part.column.index].text === part.select.value);
      }
      return found;
    }

    draw() {
      if (!this.box.open) return;
      const column = this.quantities.find((one) => one.name === this.quantity.select.value);
      const found = this.chosen(column);
      found.sort((one, two) => one.cells[column.index].numbers[0] - two.cells[column.index].numbers[0]);
      const rows = found.slice(0, MOST_MARKS);
      this.width = this.place.clientWidth || 800;
      const named = this.words.filter(({ index }) => new Set(rows.map((r) => r.cells[index].text)).size > 1);
      const marks = rows.map((row) => mark(row, column, named));
      const more = found.length > rows.length ? [make("p", { class: "source" },
        `The first ${rows.length} of ${found.length} rows.`)] : [];
      this.place.replaceChildren(ranking(marks, column, this.width, legendOf(marks, rows, named)), ...more);
    }
  }

  function mark(row, column, named) {
    const { text, numbers } = row.cells[column.index];
    const label = named.map(({ index, name }) => {
      const level = row.cells[index].text;
      return /^[a-z_]/i.test(level) ? level : `${name} ${level}`;
    }).join(", ") || row.cells[0].text;
    const [value, low = value, high = value] = numbers;
    return { label, text, value, low: low || value, high: high || value, link: row.link };
  }

  // Colours the marks by the first factor of few levels; returns its levels with their colours.
  function legendOf(marks, rows, named) {
    const texts = (column) => new Set(rows.map((row) => row.cells[column.index].text));
    const few = named.find((column) => texts(column).size <= COLOURS.length);
    if (!few) return [];
    const levels = [...texts(few)].sort(byWords.compare);
    rows.forEach((row, i) => (marks[i].colour = COLOURS[levels.indexOf(row.cells[few.index].text)]));
    return levels.map((level, i) => ({ level: `${few.name} ${level}`, colour: COLOURS[i] }));
  }

  function ranking(marks, column, width, legend) {
    const narrow = width < 620;
    const longest = Math.max(0, ...marks.map((one) => one.label.length));
    const left = narrow ? 8 : Math.min(width * 0.45, 12 + LETTER * longest);
    const room = narrow ? width - 8 : left;
    const most = Math.max(1, ...marks.map((one) => lines(one.label, room).length));
    const [step, top] = [(narrow ? 20 : 5) + 14 * most, 8 + 18 * legend.length];
    const height = top + step * marks.length + 26;
    const axis = scale(marks, column, left + 14, width - 20);
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "group",
      "aria-label": `Ranking by ${column.name}: ${marks.length} rows` });
    legend.forEach(({ level, colour }, i) => svg.append(
      draw("circle", { cx: left + 8, cy: 12 + 18 * i, r: 4, fill: colour }),
      draw("text", { x: left + 18, y: 16 + 18 * i }, level)));
    drawAxis(svg, axis, column, top, height);
    marks.forEach((one, i) => svg.append(markElement(one, axis, top + step * i, step, left, narrow && width)));
    return svg;
  }

  function drawAxis(svg, axis, { kind }, top, height) {
    for (const tick of axis.ticks) {
      const x = axis.at(tick);
      const look = tick === 1 && kind === "ratio" ? "one" : "grid";
      svg.append(draw("line", { class: look, x1: x, x2: x, y1: top, y2: height - 20 }),
        draw("text", { class: "axis", x, y: height - 6, "text-anchor": "middle" }, short(tick, kind)));
    }
  }

  // `narrow`: the width of a narrow ranking, where the words stand above the mark; else false.
  function markElement(one, axis, y, step, left, narrow) {
    const centre = narrow ? y + step - 10 : y + step / 2;
    const colour = one.colour ?? COLOURS[0];
    const look = { stroke: colour, "stroke-width": 1.5 };
    const tip = `${one.label}: ${one.text}`;
    const said = lines(one.label, narrow ? narrow - 8 : left);
    const first = narrow ? y + 13 : centre + 4 - 7 * (said.length - 1);
    const words = said.map((line, i) => draw("text", { x: narrow ? 4 : left, y: first + 14 * i,
      "text-anchor": narrow ? "start" : "end" }, line));
    const known = { "aria-label": tip, "data-tip": tip };
    const element = one.link ? draw("a", { href: one.link, ...known })
      : draw("g", { tabindex: "0", role: "img", ...known });
    element.append(...words,
      draw("line", { ...look, x1: axis.at(one.low), x2: axis.at(one.high), y1: centre, y2: centre }),
      draw("circle", { cx: axis.at(one.value), cy: centre, r: 4.5, fill: colour }));
    return element;
  }

  // Logarithmic where the values are positive and far apart, and for ratios; else from 0.
  function scale(marks, column, left, right, floor = 0) {
    const values = marks.flatMap((one) => [one.value, one.low, one.high]);
    const ratio = column.kind === "ratio";
    if (ratio) values.push(0.95, 1.05); // the line at 1 is always on it
    let [low, high] = [Math.min(...values), Math.max(...values)];
    const logarithmic = low > 0 && (ratio || high / low > WIDE);
    const of = logarithmic ? Math.log10 : (v) => v;
    if (!logarithmic) low = Math.min(floor, low);
    if (high === low) high = low + 1;
    const at = (v) => left + ((of(v) - of(low)) / (of(high) - of(low))) * (right - left);
    return { at, ticks: logarithmic ? logTicks(low, high) : linearTicks(low, high) };
  }

  function logTicks(low, high) {
    const powers = Array.from({ length: 60 }, (_, i) => i - 30);
    const within = (steps) => powers.flatMap((p) => steps.map((m) => Number(`${m}e${p}`)))
      .filter((tick) => tick >= low && tick <= high);
    const few = [[1, 1.2, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3]].map(within).find((all) => all.length <= 7);
    const tens = within([1]);
    return few ?? tens.filter((_, i) => i % Math.ceil(tens.length / 6) === 0);
  }

  function linearTicks(low, high) {
    const rough = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    return Array.from({ length: 7 }, (_, i) => (Math.ceil(low / step) + i) * step).filter((t) => t <= high);
  }

  const TIMES = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const COUNTS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

  function short(value, kind) {
    const units = kind === "time" ? TIMES : COUNTS;
    const [by, unit] = units.find(([least]) => Math.abs(value) >= least * 0.9995) ?? [1, ""];
    return `${Number((value / by).toPrecision(5))}${kind === "time" && value ? " " : ""}${unit}`;
  }

  // The samples of a point as dots, a line for each round, once it is unfolded.
  function addStrips() {
    for (const point of all(".point")) {
      const last = all(".samples", point).at(-1);
      point.parentNode.addEventListener("toggle", () => last?.after(...strip(point)), { once: true });
    }
  }

  function strip(point) {
    const rounds = all(".samples", point).map((line) => {
      const words = line.textContent.trim().split(/\s+/);
      const [by] = TIMES.find(([, unit]) => unit === words.at(-1));
      return { name: `${words[0]} ${words[1]}`, samples: words.slice(2, -1).map((v) => Number(v) * by) };
    });
    const marks = rounds.flatMap(({ samples }) => samples.map((v) => ({ value: v, low: v, high: v })));
    if (marks.length < 2) return [];
    const [width, height] = [Math.min(point.clientWidth - 16, 700), 16 * rounds.length + 26];
    const kind = { kind: "time" };
    const axis = scale(marks, kind, 90, width - 30, Math.min(...marks.map((one) => one.value)));
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
      "aria-label": "The samples of each round, which stand above in numbers" });
    drawAxis(svg, axis, kind, 4, height);
    rounds.forEach(({ name, samples }, i) => svg.append(
      draw("text", { x: 0, y: 16 * i + 15 }, name),
      ...samples.map((v) => draw("circle", { cx: axis.at(v), cy: 16 * i + 11, r: 3, fill: COLOURS[0],
        "fill-opacity": ".65" }))));
    return [make("div", { class: "strip chart" }, svg)];
  }

  // What stands under the pointer or has the focus.

  function addTips() {
    for (const title of all(".drawing use > title, .drawing path > title")) {
      title.parentNode.dataset.tip = title.textContent;
      title.remove();
    }
    const tip = make("div", { class: "tip", role: "status" });
    const show = (event) => {
      const from = event.target.closest?.("[data-tip]");
      if (!from) return tip.remove();
      tip.textContent = from.dataset.tip;
      document.body.append(tip);
      const box = (from.querySelector("circle") ?? from).getBoundingClientRect();
      tip.style.left = `${Math.max(4, Math.min(box.right + 8, innerWidth - tip.offsetWidth - 4))}px`;
      tip.style.top = `${Math.max(4, box.top - tip.offsetHeight - 4)}px`;
    };
    for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, show);
    document.addEventListener("keydown", (event) => event.key === "Escape" && tip.remove());
  }

  // On a narrow screen a row is a card whose cells say their column.
  function fitNarrow() {
    for (const table of all("table.rows")) {
      const names = all("thead th", table).map((head) => head.textContent.replace(/ [↕↑↓]$/, ""));
      for (const row of table.tBodies[0].rows)
        [...row.cells].forEach((cell, i) => {
          const first = i === 0 && !cell.dataset.v && !(table.closest("[data-chart]") && row.querySelector(".lead"));
          // What an effect is of, the choice above the table says.
          if (!first && !(cell.classList.contains("lead") && names[i] === "effect")) cell.dataset.label = names[i];
        });
    }
  }

  // A link to a point opens what is folded around it.
  function unfold() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let at = target?.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    target?.scrollIntoView();
  }

  function addTheme(nav) {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const root = document.documentElement;
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
    const button = make("button", { type: "button", class: "theme" });
    const name = () => (button.textContent = isDark() ? "Light colours" : "Dark colours");
    button.addEventListener("click", () => name(root.dataset.theme = isDark() ? "light" : "dark"));
    dark.addEventListener("change", name);
    name();
    nav.prepend(button);
  }

  // The contents mark the section whose heading was passed last.
  function followContents(nav) {
    const links = all('a[href^="#"]', nav);
    const heads = links.map((link) => document.getElementById(link.getAttribute("href").slice(1)));
    let asked = false;
    const mark = () => {
      asked = false;
      const end = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
      const line = end ? innerHeight : 100; // px, a heading at the top and some more
      const at = heads.findLastIndex((head) => head.checkVisibility() && head.getBoundingClientRect().top < line);
      links.forEach((link, i) => (i === at ? link.setAttribute("aria-current", "location")
        : link.removeAttribute("aria-current")));
      const [box, link] = [nav.getBoundingClientRect(), links[at]?.getBoundingClientRect()];
      if (link && (link.top < box.top || link.bottom > box.bottom)) nav.scrollTop += link.top - box.height / 2;
    };
    addEventListener("scroll", () => { asked ||= requestAnimationFrame(mark); });
    mark();
  }

  const nav = document.querySelector("nav");
  addTheme(nav);
  nav.querySelector("details").open = WIDE_SCREEN.matches;
  for (const box of all(".table")) {
    const grid = new Grid(box);
    if (grid.rows.length < 2) continue;
    addSorting(grid);
    addRest(grid);
    addTools(grid);
    if ("chart" in box.dataset) new Ranking(grid).build();
  }
  if (!WIDE_SCREEN.matches) fitNarrow();
  addTips();
  addStrips();
  followContents(nav);
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();
})();
