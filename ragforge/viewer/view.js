"use strict";
// Asks for this page again and again, and takes over its live part when it is another.
const EVERY_MS = 2000;
const live = () => document.getElementById("live");
const say = (text) => {
  const state = document.getElementById("state");
  if (state.textContent !== text) state.textContent = text;
};
let etag = "";

// The table of all datasets: what is searched for, shown and sorted by is in the address.
const wanted = () => new URLSearchParams(location.hash.slice(1));

function want(name, value) {
  const next = wanted();
  if (value) next.set(name, value);
  else next.delete(name);
  history.replaceState(null, "", `#${next}`);
  arrange();
}

function valueOf(row, column) {
  const cell = row.cells[column];
  const value = cell.dataset.value ?? (column ? "" : cell.textContent);
  return value !== "" && !Number.isNaN(Number(value)) ? Number(value) : value;
}

function compared(a, b) {
  if (a === "" || b === "") return (a === "") - (b === "");
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

function arrange() {
  const table = document.querySelector("#live .sets");
  if (!table) return;
  const asked = wanted();
  const words = (asked.get("search") || "").toLowerCase().split(/\s+/).filter(Boolean);
  const heads = [...table.tHead.rows[0].cells];
  const sort = asked.get("sort") || "";
  const column = heads.findIndex((cell) => cell.dataset.sort && cell.dataset.sort === sort.replace(/^-/, ""));
  const rows = [...table.tBodies[0].rows];
  if (column >= 0) {
    const sign = sort.startsWith("-") ? -1 : 1;
    const known = (row) => valueOf(row, column) !== "";
    rows.sort((a, b) => known(b) - known(a) || sign * compared(valueOf(a, column), valueOf(b, column)));
    table.tBodies[0].append(...rows);
  }
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    const state = asked.get("state");
    row.hidden = !words.every((word) => text.includes(word)) || Boolean(state && row.dataset.state !== state);
  }
  heads.forEach((cell, at) => {
    const way = at === column ? (sort.startsWith("-") ? "descending" : "ascending") : "none";
    if (cell.dataset.sort) cell.setAttribute("aria-sort", way);
    if (!cell.dataset.sort || cell.querySelector("button")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...cell.childNodes);
    button.addEventListener("click", () => {
      const now = wanted().get("sort");
      want("sort", now === cell.dataset.sort ? `-${cell.dataset.sort}` : cell.dataset.sort);
    });
    cell.append(button);
  });
  const shown = rows.filter((row) => !row.hidden).length;
  const text = shown === rows.length ? `${rows.length} datasets` : `${shown} of ${rows.length} datasets`;
  const count = document.getElementById("count");
  if (count.textContent !== text) count.textContent = text;
}

function listen() {
  const tools = document.getElementById("tools");
  if (!tools) return;
  const [search, state] = [document.getElementById("search"), document.getElementById("state-of")];
  const fill = () => {
    if (document.activeElement !== search) search.value = wanted().get("search") || "";
    state.value = wanted().get("state") || "";
    arrange();
  };
  search.addEventListener("input", () => want("search", search.value));
  state.addEventListener("change", () => want("state", state.value));
  addEventListener("hashchange", fill);
  tools.hidden = false;
  fill();
}

// Controls and links of a view change the address, and the page follows without being loaded anew.
const controls = () => [...document.querySelectorAll("#view-tools [data-param]")];

function show(address, replaces = false) {
  if (replaces) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  return follow();
}

async function follow() {
  etag = "";
  try {
    await look();
  } catch (error) {
    complain(error);
  }
}

function choose(control) {
  const next = new URL(location.href);
  next.searchParams.delete("page");
  if (control.value) next.searchParams.set(control.dataset.param, control.value);
  else next.searchParams.delete(control.dataset.param);
  return show(next, control.type === "search");
}

function takeControls(page) {
  for (const control of controls()) {
    const next = page.querySelector(`[data-param="${control.dataset.param}"]`);
    if (next && control !== document.activeElement) control.value = next.value;
  }
}

function listenToView() {
  const tools = document.getElementById("view-tools");
  addEventListener("popstate", () => tools && follow());
  if (!tools) return;
  let timer;
  for (const control of controls()) {
    const isTyped = control.type === "search";
    control.addEventListener(isTyped ? "input" : "change", () => {
      clearTimeout(timer);
      if (isTyped) timer = setTimeout(choose, 200, control);
      else choose(control);
    });
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-view]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    show(link.href).then(() => new URL(location.href).searchParams.has("q") && scrollTo(0, 0));
  });
  tools.hidden = false;
}

function press(event) {
  const typing = event.target.matches("input, select, textarea");
  if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const link = [...document.querySelectorAll("a[data-key]")].find((one) => one.dataset.key === event.key);
  const asks = [...document.querySelectorAll("#live tbody th a")].filter((one) => one.offsetParent);
  const at = asks.indexOf(document.activeElement);
  const next = { j: asks[at + 1], k: asks[at - 1] }[event.key];
  if (link) link.click();
  else if (event.key === "/" && document.getElementById("search")) document.getElementById("search").focus();
  else if (next) next.focus();
  else return;
  event.preventDefault();
}

async function look() {
  const asked = location.pathname + location.search;
  const headers = etag ? { "If-None-Match": etag } : {};
  const reply = await fetch(asked, { headers, cache: "no-store" });
  // Meanwhile somebody asked for another view.
  if (asked !== location.pathname + location.search) return;
  if (reply.status === 304) return;
  if (reply.status === 401) throw new Error("the server was started again: open its new address");
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const next = page.getElementById("live");
  if (!next) throw new Error(`the server says ${reply.status}`);
  if (asked !== location.pathname + location.search) return;
  const isFirst = !etag;
  etag = reply.headers.get("ETag") || "";
  takeControls(page);
  if (isFirst && next.innerHTML === live().innerHTML) return;
  const places = [...document.querySelectorAll("#live .scroll")].map((box) => box.scrollLeft);
  const focused = live().contains(document.activeElement) && document.activeElement;
  live().replaceWith(document.adoptNode(next));
  arrange();
  if (focused) refocus(focused);
  document.querySelectorAll("#live .scroll").forEach((box, at) => (box.scrollLeft = places[at] || 0));
  document.title = page.title;
}

function complain(error) {
  say(`Not live: ${error instanceof TypeError ? "the server cannot be reached" : error.message}.`);
}

// What had the focus is another element now: the link of the same place, or the head of the column.
function refocus(old) {
  const href = old.getAttribute("href");
  const alike = [...live().querySelectorAll(old.tagName)];
  const found = alike.find((one) => href && one.getAttribute("href") === href);
  (found || alike.find((one) => one.textContent === old.textContent))?.focus();
}

async function tick() {
  if (!document.hidden) {
    try {
      await look();
      say("Live: new evaluations appear by themselves.");
    } catch (error) {
      complain(error);
    }
  }
  setTimeout(tick, EVERY_MS);
}

listen();
listenToView();
document.addEventListener("keydown", press);
tick();
