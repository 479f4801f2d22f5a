"use strict";
(() => {
  // What a link leads to opens, where it is folded up.
  function unfold() {
    const target = document.getElementById(location.hash.slice(1));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target?.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();

  // Tab stops at a table only where it scrolls.
  const watch = new ResizeObserver((changed) => {
    for (const at of new Set(changed.map(({ target }) => target.closest(".scroll")))) {
      const scrolls = at.scrollWidth > at.clientWidth || at.scrollHeight > at.clientHeight;
      if (scrolls) at.tabIndex = 0;
      else at.removeAttribute("tabindex");
    }
  });
  for (const table of document.querySelectorAll(".scroll > table")) {
    watch.observe(table);
    watch.observe(table.parentElement);
  }
})();
(() => {
  const PAGE = 200;
  const LATE_MS = 150;
  const DASH = "\u2013";
  const LOWER = "by lower grades alone";
  const $ = (id) => document.getElementById(id);
  const tools = $("queries-tools");
  if (!tools || !$("queries-index") || !("DecompressionStream" in window)) return;

  const table = $("queries-table");
  const heads = table.tHead.rows[0].cells;
  const dialog = $("query-dialog");
  const collator = new Intl.Collator(undefined, { numeric: true });
  const blocks = new Map();
  let index;
  let rows;
  let body;
  let order = [];
  let state = { page: 0 };
  let drawn = "";

  // Data

  async function block(key) {
    if (!blocks.has(key)) {
      const inside = $(key);
      blocks.set(key, (inside ? Promise.resolve(inside.textContent) : load(key)).then(inflate));
      // What failed is asked for anew: the folder may be put back.
      blocks.get(key).catch(() => blocks.delete(key));
    }
    return blocks.get(key);
  }

  // Files beside the page hand over what is in them: a page that is a file may not read others.
  const awaited = new Map();
  window.ragforgeBlock = (key, text) => awaited.get(key)?.(text);

  function load(key) {
    const file = h("script", { src: `${index.files}${key}.js` });
    return new Promise((done, fail) => {
      awaited.set(key, done);
      file.addEventListener("error", fail);
      file.addEventListener("load", fail);
      document.head.append(file);
    }).finally(() => {
      awaited.delete(key);
      file.remove();
    });
  }

  async function inflate(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  async function allRows() {
    const parts = [];
    for (let place = 0; place < index.rowBlocks; place += 1) {
      parts.push(await block(`queries-rows-${place}`));
    }
    blocks.clear();
    const joined = (pick) => parts.flatMap(pick);
    const facets = index.facets.map((_, place) => joined((part) => part.facets[place]));
    const byRun = (name) => index.runs.map((_, run) => joined((part) => part.runs[run][name]));
    return {
      id: joined((part) => part.id),
      text: joined((part) => part.text),
      facets,
      // Whether a facet tells queries apart: more than one value is there.
      tells: facets.map((codes) => codes.some((code) => code !== codes[0])),
      verdicts: index.systems.map((_, place) => joined((part) => part.verdicts[place])),
      value: byRun("value"),
      first: byRun("first"),
      holes: byRun("holes"),
      state: byRun("state"),
      cause: byRun("cause"),
    };
  }

  // State: it is in the address, and nowhere else

  function readState() {
    const hash = location.hash.slice(1);
    if (hash && !hash.includes("=")) return state;
    const found = Object.fromEntries(new URLSearchParams(hash));
    return { ...found, page: Math.max(0, Number.parseInt(found.page, 10) - 1 || 0) };
  }

  function address(next) {
    const given = Object.entries({ ...next, page: next.page ? next.page + 1 : "" });
    const kept = given.filter(([, value]) => value !== undefined && value !== "");
    // An empty fragment would scroll to the top.
    return `#${new URLSearchParams(kept.sort())}`.replace(/^#$/, "#q=");
  }

  function go(change, replaces = false) {
    const next = address({ ...state, ...change });
    if (next === location.hash) return;
    if (replaces) location.replace(next);
    else location.hash = next;
  }

  // Which rows, in which order

  const sortKey = () => (state.sort || "").replace(/^-/, "");

  const pair = () => {
    const at = (name, otherwise) => {
      const place = Number.parseInt(state[name] ?? "", 10);
      return place in index.runs ? place : otherwise;
    };
    return [at("from", 0), at("to", 1)];
  };

  function difference(row) {
    if (index.runs.length < 2) return null;
    const [from, to] = pair();
    const [before, now] = [rows.value[from][row], rows.value[to][row]];
    return before === null || now === null ? null : now - before;
  }

  const measured = (row) => index.runs.map((_, run) => rows.value[run][row]);
  const failing = ["failed", "judging failed"];
  const TESTS = {
    failed: (row) => rows.state.some((of) => failing.includes(index.states[of[row]])),
    low: (row) => measured(row).some((value) => value !== null && value < 0.5),
    nohit: (row) => measured(row).some((value, run) => value !== null
      && (index.ofEvidence ? value === 0 : !rows.first[run][row])),
    holes: (row) => rows.holes.some((of, run) => of[row] && rows.value[run][row] !== null),
    changed: (row) => Boolean(difference(row)),
    worse: (row) => (difference(row) ?? 0) < 0,
    better: (row) => (difference(row) ?? 0) > 0,
  };

  const folded = (text) => text.normalize("NFC").toLowerCase();

  function searcher() {
    const words = folded(state.search || "").split(/\s+/).filter(Boolean);
    if (!words.length) return null;
    const place = index.facets.findIndex((facet) => facet.name === "document");
    rows.hay ??= rows.id.map((id, row) =>
      folded(`${id}\n${rows.text[row]}\n${index.facets[place].values[rows.facets[place][row]]}`));
    return (row) => words.every((word) => rows.hay[row].includes(word));
  }

  function tests() {
    const found = [Object.hasOwn(TESTS, state.filter) && TESTS[state.filter], searcher()];
    if (state.cause) {
      const code = index.causes.indexOf(state.cause);
      found.push((row) => rows.cause.some((of) => of[row] === code));
    }
    index.facets.forEach((facet, place) => {
      const wanted = state[facet.name];
      if (!wanted) return;
      const code = facet.values.indexOf(wanted === "-" ? "" : wanted);
      found.push((row) => rows.facets[place][row] === code);
    });
    return found.filter(Boolean);
  }

  function column(key) {
    const [name, place = "0"] = key.split(".");
    const facet = index.facets.findIndex((one) => one.name === name);
    if (facet >= 0) {
      return (row) => inOrder(index.facets[facet].values[rows.facets[facet][row]] || null);
    }
    if (name === "query") return (row) => rows.text[row];
    if (name === "diff") return difference;
    if (name === "verdict" && rows.verdicts[place]) {
      return (row) => inOrder(index.verdicts[rows.verdicts[place][row]] || null);
    }
    const numbers = ["value", "first", "holes"].includes(name) && rows[name][place];
    if (!numbers) return null;
    return (row) => (rows.value[place][row] === null ? null : numbers[row]);
  }

  // Words that have an order of their own come in it, before all others.
  const ORDERED = ["easy", "medium", "hard", "correct", "partial", "not attempted", "incorrect"];
  function inOrder(word) {
    const at = ORDERED.indexOf(word);
    return at < 0 ? word : `\u0001${at}`;
  }

  function arranged() {
    const every = tests();
    const found = [];
    for (let row = 0; row < rows.id.length; row += 1) {
      if (every.every((test) => test(row))) found.push(row);
    }
    const downwards = (state.sort || "").startsWith("-");
    const of = state.sort && column(sortKey());
    if (!of) return found;
    const keys = new Map(found.map((row) => [row, of(row)]));
    const sign = downwards ? -1 : 1;
    // What has no value comes last, whichever way.
    return found.sort((a, b) => {
      const [one, other] = [keys.get(a), keys.get(b)];
      if (one === null || other === null) return (one === null) - (other === null) || a - b;
      const by = typeof one === "string" ? collator.compare(one, other) : one - other;
      return sign * by || a - b;
    });
  }

  // Drawing: data goes in as text, never as markup

  function h(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.filter(Boolean));
    return made;
  }

  function number(value) {
    if (value === null) return DASH;
    // Of sixteenths alone a half is left: it goes to the even digit, as in all other tables.
    const low = Math.floor(value * 1000);
    const isHalf = Number.isInteger(value * 16) && value * 1000 - low === 0.5;
    return (isHalf ? (low + (low % 2)) / 1000 : value).toFixed(3);
  }
  function signed(value) {
    if (value === null) return DASH;
    const shown = number(Math.abs(value));
    return Number(shown) === 0 ? shown : `${value < 0 ? "-" : "+"}${shown}`;
  }

  const tone = (value) => (!value ? null : value < 0 ? "worse" : "better");

  function tags(row) {
    const known = index.facets.map((facet, place) =>
      rows.tells[place] && facet.values[rows.facets[place][row]]);
    const parted = known.filter(Boolean).flatMap((text) => [" \u00b7 ", h("bdi", null, text)]);
    return parted.length ? h("small", null, ...parted.slice(1)) : null;
  }

  function cell(row, run) {
    const value = rows.value[run][row];
    const first = rows.first[run][row];
    const holes = rows.holes[run][row];
    const notes = [
      index.states[rows.state[run][row]],
      first && `rank ${first}`,
      value && !first && !index.ofEvidence && LOWER,
      value !== null && holes && `${holes} ungraded`,
      index.causes[rows.cause[run][row]],
    ];
    return h("td", null, number(value), ...notes.filter(Boolean).map((text) => h("small", null, text)));
  }

  function line(row) {
    const open = h("button", { type: "button", class: "ask", dir: "auto" }, rows.text[row]);
    open.addEventListener("click", () => go({ q: rows.id[row] }));
    const code = h("code", null, rows.id[row].slice(0, 60));
    const cells = [h("th", { scope: "row" }, open, tags(row), code)];
    cells.push(...index.runs.map((_, run) => cell(row, run)));
    if (index.runs.length > 1) {
      const moved = difference(row);
      cells.push(h("td", { class: tone(moved) }, signed(moved)));
    }
    const answers = rows.verdicts.map((of) => index.verdicts[of[row]] || DASH);
    cells.push(...answers.map((text) => h("td", { class: "t" }, text)));
    return h("tr", null, ...cells);
  }

  function drawTable() {
    const view = address({ ...state, q: "" });
    if (view === drawn) return;
    drawn = view;
    order = arranged();
    const last = Math.max(0, Math.ceil(order.length / PAGE) - 1);
    const page = Math.min(state.page, last);
    const first = page * PAGE;
    const shown = order.slice(first, first + PAGE);
    table.tBodies[0].replaceChildren(...shown.map(line));
    stopAt(asks()[0]);
    const all = rows.id.length.toLocaleString("en");
    const some = order.length.toLocaleString("en");
    const which = last ? `, rows ${first + 1} to ${first + shown.length}` : "";
    $("queries-count").textContent = `${some} of ${all} queries shown${which}`;
    $("queries-pager").hidden = !last;
    $("queries-back").disabled = page === 0;
    $("queries-forth").disabled = page === last;
    const by = sortKey();
    for (const cell of heads) {
      const here = cell.dataset.sort === by;
      const way = state.sort === by ? "ascending" : "descending";
      cell.setAttribute("aria-sort", here ? way : "none");
    }
  }

  function drawTools() {
    const search = $("queries-search");
    if (document.activeElement !== search) search.value = state.search || "";
    const [from, to] = pair();
    $("queries-reverse").disabled = !sortKey();
    const set = { ...state, from: String(from), to: String(to), sort: sortKey() };
    for (const box of tools.querySelectorAll("select")) {
      box.value = set[box.name] ?? "";
      if (box.selectedIndex < 0) box.selectedIndex = 0;
    }
  }

  // The rows have one Tab stop; arrow keys go from row to row

  const asks = () => [...table.tBodies[0].querySelectorAll("button.ask")];

  function stopAt(ask) {
    for (const one of asks()) one.tabIndex = one === ask ? 0 : -1;
  }

  function walk(event) {
    const every = asks();
    const at = every.indexOf(document.activeElement);
    const way = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: every.length - 1 };
    const next = every[way[event.key]];
    if (at < 0 || !next || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    next.focus();
  }

  // One query, opened

  async function opened(row) {
    if (row >= index.details) return { row };
    const details = await block(`queries-detail-${Math.floor(row / index.aBlock)}`);
    const query = details.queries[row % index.aBlock];
    const places = query.chunks.map((chunk) => details.at[chunk][0]);
    const wanted = [...new Set(places)];
    const found = await Promise.all(wanted.map((place) => block(`queries-texts-${place}`)));
    const texts = new Map(wanted.map((place, at) => [place, found[at]]));
    const start = (chunk) => texts.get(details.at[chunk][0])[details.at[chunk][1]];
    return { row, query, chunks: details.chunks, start };
  }

  async function showQuery(row, wanted) {
    const late = setTimeout(() => state.q === wanted && showBody({ row, isLate: true }), LATE_MS);
    const found = await opened(row).catch(() => ({ row, isGone: true }));
    clearTimeout(late);
    if (state.q === wanted) showBody(found);
  }

  function showBody(found) {
    $("query-body").replaceChildren(...body(found).filter(Boolean));
    if (!dialog.open) dialog.showModal();
  }

  async function drawDialog() {
    const wanted = state.q;
    if (!wanted) {
      if (dialog.open) dialog.close();
      return;
    }
    const row = rows.id.indexOf(wanted);
    if (row < 0) {
      $("queries-count").textContent = `There is no query ${wanted} in this page.`;
      if (dialog.open) dialog.close();
      return;
    }
    await showQuery(row, wanted);
    if (state.q !== wanted) return;
    const at = order.indexOf(row);
    $("query-back").disabled = at <= 0;
    $("query-forth").disabled = at < 0 || at + 1 >= order.length;
    $("query-body").focus({ preventScroll: true });
    dialog.scrollTop = 0;
  }

  function step(by) {
    const row = order[order.indexOf(rows.id.indexOf(state.q)) + by];
    if (row !== undefined) go({ q: rows.id[row] });
  }

  function draw() {
    state = readState();
    drawTools();
    drawTable();
    return drawDialog();
  }

  // Controls

  function sortBy(key) {
    const next = { [key]: `-${key}`, [`-${key}`]: "" }[state.sort] ?? key;
    go({ sort: next, page: 0 });
  }

  function later(act) {
    let timer;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(act, 120);
    };
  }

  function listen() {
    for (const cell of heads) {
      const button = h("button", { type: "button", class: "sort" }, ...cell.childNodes);
      button.addEventListener("click", () => sortBy(cell.dataset.sort));
      cell.append(button);
    }
    table.tBodies[0].addEventListener("keydown", walk);
    table.tBodies[0].addEventListener("focusin", ({ target }) => target.matches(".ask") && stopAt(target));
    const search = $("queries-search");
    search.addEventListener("input", later(() => go({ search: search.value, page: 0 }, true)));
    for (const box of tools.querySelectorAll("select")) {
      box.addEventListener("change", () => go({ [box.name]: box.value, page: 0 }));
    }
    $("queries-reset").addEventListener("click", () => {
      search.value = "";
      location.hash = "q=";
    });
    $("queries-reverse").addEventListener("click", () => {
      const key = sortKey();
      if (key) go({ sort: state.sort === key ? `-${key}` : key, page: 0 });
    });
    $("queries-back").addEventListener("click", () => turn(-1));
    $("queries-forth").addEventListener("click", () => turn(1));
    $("query-back").addEventListener("click", () => step(-1));
    $("query-forth").addEventListener("click", () => step(1));
    $("query-close").addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => state.q && go({ q: "" }));
    dialog.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.key === "j") step(1);
      if (event.key === "k") step(-1);
    });
    addEventListener("hashchange", draw);
  }

  function turn(by) {
    go({ page: state.page + by });
    table.parentElement.scrollIntoView({ block: "start" });
  }

  async function start() {
    index = await block("queries-index");
    rows = await allRows();
    body = drilldown(index, rows, h, number);
    listen();
    tools.hidden = false;
    $("queries-more").hidden = true;
    await draw();
    table.dataset.ready = String(Math.round(performance.now()));
  }

  start().catch((error) => {
    tools.hidden = true;
    table.dataset.fault = String(error);
  });
})();
