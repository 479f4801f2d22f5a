"use strict";
// What all pages share on which a person labels: items in order, a label each, kept as it is given.
async function labelSession(page) {
  const $ = (id) => document.getElementById(id);
  const work = $("work");
  if (!("DecompressionStream" in window)) {
    $("old").hidden = false;
    return;
  }
  const items = await inflate($("items").textContent);
  const { labeller, sheet, post, noun } = work.dataset;
  const before = Number(work.dataset.done);
  // One label an item, in the order of the items: the next item is at its length.
  let given = post ? [] : read();
  let unkept = false;
  let unsaved = 0;
  let spent = 0;
  let since = 0;
  const queue = [];
  let sending = false;
  // Why labels were not taken, one a label: what is refused once is refused again.
  const refused = [];
  let isElsewhere = false;

  async function inflate(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  function read() {
    try {
      const found = JSON.parse(localStorage.getItem(sheet) || "[]");
      const isWhole = Array.isArray(found) && found.length <= items.length;
      return isWhole && found.every((label) => label && page.isLabel(label)) ? found : [];
    } catch {
      return [];
    }
  }

  function keep() {
    if (post) return;
    try {
      localStorage.setItem(sheet, JSON.stringify(given));
      unkept = false;
    } catch {
      unkept = true;
    }
  }

  function row(at) {
    return { ...page.identity(items[at]), labeller, ...given[at] };
  }

  function place() {
    const total = items.length + before;
    const here = Math.min(given.length + before + 1, total);
    const skipped = given.filter((label) => label.skipped).length;
    const parts = [`${noun} ${here} of ${total}`];
    const batch = items[given.length]?.batch;
    if (batch) parts.push(`batch ${batch} of ${items[items.length - 1].batch}`);
    if (skipped) parts.push(`${skipped} skipped`);
    if (!post && unsaved) parts.push(`${unsaved} not saved to a file`);
    $("place").textContent = parts.join(", ");
    $("progress").max = total;
    $("progress").value = given.length + before;
  }

  function show() {
    const item = items[given.length];
    work.hidden = $("bar").hidden = !item;
    $("end").hidden = Boolean(item);
    $("undo").disabled = $("undo-last").disabled = !given.length;
    $("save").hidden = $("save-all").hidden = Boolean(post);
    place();
    fault();
    if (!item) {
      $("done").focus();
      return;
    }
    $("query").textContent = item.query;
    $("before").textContent = item.before;
    $("before").hidden = !item.before;
    $("text").textContent = item.text;
    page.show(item);
    $("desk").scrollTo(0, 0);
    // Keys scroll what has the focus; buttons keep theirs.
    if (document.activeElement === document.body) $("desk").focus();
    since = performance.now();
  }

  function fault(more) {
    const parts = more ? [more] : [];
    if (unkept) parts.push("this browser keeps nothing, so save before you leave");
    if (refused.length) parts.push(`${refused.length} refused: ${refused[0]}; reload the page`);
    if (queue.length && !sending) {
      const why = isElsewhere ? "the server was started again: open its new address" : "the server cannot be reached; it is tried again";
      parts.push(`${queue.length} not kept: ${why}`);
    }
    const text = parts.join("; ");
    $("fault").textContent = text && `${text[0].toUpperCase()}${text.slice(1)}.`;
  }

  function measured() {
    if (!document.hidden) {
      spent += performance.now() - since;
      since = performance.now();
    }
    const seconds = Math.round(spent) / 1000;
    spent = 0;
    return seconds;
  }

  function label(fields) {
    if (given.length >= items.length) return;
    const at = `${new Date().toISOString().slice(0, 19)}+00:00`;
    given.push({ ...fields, seconds: measured(), at });
    unsaved += 1;
    keep();
    send(row(given.length - 1));
    show();
  }

  function skip() {
    label(page.skipped);
  }

  function undo() {
    if (!given.length) return;
    const taken = row(given.length - 1);
    spent = given.pop().seconds * 1000;
    unsaved = Math.max(unsaved - 1, 0);
    keep();
    send({ ...taken, undo: true });
    show();
  }

  function send(what) {
    if (!post) return;
    queue.push(what);
    flush();
  }

  async function flush() {
    if (sending || !queue.length) return;
    sending = true;
    try {
      while (queue.length) {
        const reply = await fetch(post, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify(queue[0]),
        });
        isElsewhere = reply.status === 401;
        const isRefused = [400, 403, 404, 409, 413, 415].includes(reply.status);
        if (isRefused) refused.push(await reason(reply));
        else if (!reply.ok) throw new Error(String(reply.status));
        queue.shift();
      }
    } catch {
      setTimeout(flush, 3000);
    } finally {
      sending = false;
      fault();
    }
  }

  async function reason(reply) {
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const said = page.querySelector(".notice p")?.textContent || `the server says ${reply.status}`;
    return said.replace(/\.$/, "");
  }

  function save() {
    const lines = given.map((_, at) => `${JSON.stringify(row(at))}\n`);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
    const name = labeller.replace(/[^A-Za-z0-9]+/g, "-") || "people";
    link.download = `${page.file}-${name}.jsonl`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    unsaved = 0;
    place();
  }

  function press(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    const key = event.key.toLowerCase();
    if (key === "s") skip();
    else if (key === "u") undo();
    else if (given.length >= items.length || !page.press(key, event)) return;
    event.preventDefault();
  }

  const session = { item: () => items[given.length], label, fault };
  page.begin(session);
  document.addEventListener("keydown", press);
  $("skip").addEventListener("click", skip);
  for (const id of ["undo", "undo-last"]) $(id).addEventListener("click", undo);
  for (const id of ["save", "save-all"]) $(id).addEventListener("click", save);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) spent += performance.now() - since;
    else since = performance.now();
  });
  addEventListener("storage", (event) => {
    if (event.key !== sheet || post) return;
    given = read();
    spent = 0;
    show();
  });
  addEventListener("beforeunload", (event) => {
    if (unkept || queue.length) event.preventDefault();
  });
  unsaved = given.length;
  show();
  document.documentElement.dataset.ready = "yes";
}
