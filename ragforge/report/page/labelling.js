"use strict";
(async () => {
  const $ = (id) => document.getElementById(id);
  const work = $("work");
  if (!("DecompressionStream" in window)) {
    $("old").hidden = false;
    return;
  }
  const pairs = await inflate($("pairs").textContent);
  const { labeller, sheet, post } = work.dataset;
  const before = Number(work.dataset.done);
  // One label a pair, in the order of the pairs: the next pair is at its length.
  let given = post ? [] : read();
  let unkept = false;
  let unsaved = 0;
  let spent = 0;
  let since = 0;
  const queue = [];
  let sending = false;

  async function inflate(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  function isLabel(found) {
    if (!found || typeof found !== "object") return false;
    return found.skipped === true ? found.grade === null : [0, 1, 2, 3].includes(found.grade);
  }

  function read() {
    try {
      const found = JSON.parse(localStorage.getItem(sheet) || "[]");
      return Array.isArray(found) && found.length <= pairs.length && found.every(isLabel) ? found : [];
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
    const { query_id, chunk_id, look, text_sha256, decides } = pairs[at];
    const { grade, skipped, seconds, at: when } = given[at];
    return {
      query_id, chunk_id, look, labeller, grade, skipped, seconds, at: when, decides, text_sha256,
    };
  }

  function whole(text) {
    return text ? `${text}.` : "";
  }

  function place() {
    const total = pairs.length + before;
    const here = Math.min(given.length + before + 1, total);
    const skipped = given.filter((label) => label.skipped).length;
    const parts = [`Pair ${here} of ${total}`];
    if (skipped) parts.push(`${skipped} skipped`);
    if (!post && unsaved) parts.push(`${unsaved} not saved to a file`);
    $("place").textContent = parts.join(", ");
    $("progress").max = total;
    $("progress").value = given.length + before;
  }

  function show() {
    const pair = pairs[given.length];
    work.hidden = !pair;
    $("end").hidden = Boolean(pair);
    $("undo").disabled = $("undo-last").disabled = !given.length;
    $("save").hidden = $("save-all").hidden = Boolean(post);
    place();
    fault();
    if (!pair) {
      $("done").focus();
      return;
    }
    $("query").textContent = pair.query;
    $("before").textContent = pair.before;
    $("before").hidden = !pair.before;
    $("text").textContent = pair.text;
    $("answer").textContent = pair.answer;
    $("expected").hidden = !pair.answer;
    $("expected").open = false;
    $("settle").hidden = !pair.decides;
    $("settle").textContent = whole(pair.decides ? `Given so far: ${pair.given.join(" and ")}` : "");
    scrollTo(0, 0);
    since = performance.now();
  }

  function fault() {
    const parts = [];
    if (unkept) parts.push("this browser keeps nothing, so save before you leave");
    if (queue.length && !sending) {
      parts.push(`${queue.length} not kept: the server cannot be reached; it is tried again`);
    }
    const text = parts.join("; ");
    $("fault").textContent = text && whole(text[0].toUpperCase() + text.slice(1));
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

  function label(grade) {
    if (given.length >= pairs.length) return;
    const at = `${new Date().toISOString().slice(0, 19)}+00:00`;
    given.push({ grade, skipped: grade === null, seconds: measured(), at });
    unsaved += 1;
    keep();
    send(row(given.length - 1));
    show();
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
        if (!reply.ok) throw new Error(String(reply.status));
        queue.shift();
      }
    } catch {
      setTimeout(flush, 3000);
    } finally {
      sending = false;
      fault();
    }
  }

  function save() {
    const lines = given.map((_, at) => `${JSON.stringify(row(at))}\n`);
    const blob = new Blob(lines, { type: "application/jsonl" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `labels-${labeller.replace(/[^A-Za-z0-9]+/g, "-") || "people"}.jsonl`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    unsaved = 0;
    place();
  }

  function press(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    const key = event.key.toLowerCase();
    if ("0123".includes(key)) label(Number(key));
    else if (key === "s") label(null);
    else if (key === "u") undo();
    else if (key === "a" && !$("expected").hidden) $("expected").open = !$("expected").open;
    else return;
    event.preventDefault();
  }

  document.addEventListener("keydown", press);
  for (const button of document.querySelectorAll("button.grades")) {
    button.addEventListener("click", () => label(Number(button.dataset.grade)));
  }
  $("skip").addEventListener("click", () => label(null));
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
})();
