"use strict";
// Asks for this page again and again, and takes over its live part when it is another.
const EVERY_MS = 2000;
const live = () => document.getElementById("live");
const say = (text) => {
  const state = document.getElementById("state");
  if (state.textContent !== text) state.textContent = text;
};
let etag = "";

async function look() {
  const headers = etag ? { "If-None-Match": etag } : {};
  const reply = await fetch(location.pathname, { headers, cache: "no-store" });
  if (reply.status === 304) return;
  if (reply.status === 401) throw new Error("the server was started again: open its new address");
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const next = page.getElementById("live");
  if (!next) throw new Error(`the server says ${reply.status}`);
  const isFirst = !etag;
  etag = reply.headers.get("ETag") || "";
  if (isFirst && next.innerHTML === live().innerHTML) return;
  const places = [...document.querySelectorAll("#live .scroll")].map((box) => box.scrollLeft);
  live().replaceWith(document.adoptNode(next));
  document.querySelectorAll("#live .scroll").forEach((box, at) => (box.scrollLeft = places[at] || 0));
  document.title = page.title;
}

async function tick() {
  if (!document.hidden) {
    try {
      await look();
      say("Live: new evaluations appear by themselves.");
    } catch (error) {
      say(`Not live: ${error instanceof TypeError ? "the server cannot be reached" : error.message}.`);
    }
  }
  setTimeout(tick, EVERY_MS);
}

tick();
