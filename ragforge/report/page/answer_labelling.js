"use strict";
(async () => {
  const $ = (id) => document.getElementById(id);
  const work = $("work");
  if (!("DecompressionStream" in window)) {
    $("old").hidden = false;
    return;
  }
  const answers = await inflate($("answers").textContent);
  const { labeller, sheet } = work.dataset;
  const before = Number(work.dataset.done);
  const statuses = JSON.parse(work.dataset.statuses);
  const verdicts = JSON.parse(work.dataset.verdicts);
  // One label an answer, in the order of the answers: the next answer is at its length.
  const given = read();
  let unkept = false;
  let spent = 0;
  let since = 0;

  async function inflate(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  function read() {
    try {
      const found = JSON.parse(localStorage.getItem(sheet) || "[]");
      return Array.isArray(found) && found.length <= answers.length ? found : [];
    } catch {
      return [];
    }
  }

  function keep() {
    try {
      localStorage.setItem(sheet, JSON.stringify(given));
      unkept = false;
    } catch {
      unkept = true;
    }
  }

  function group(title, name, choices) {
    const box = document.createElement("fieldset");
    const legend = document.createElement("legend");
    legend.textContent = title;
    box.append(legend);
    for (const [value, text] of choices) {
      const label = document.createElement("label");
      const radio = document.createElement("input");
      radio.type = "radio";
      radio.name = name;
      radio.value = value;
      label.append(radio, ` ${text}`);
      box.append(label);
    }
    return box;
  }

  const groups = () => [...document.querySelectorAll("#ticks fieldset")];
  const radios = (box) => [...box.querySelectorAll("input")];
  const chosen = (box) => radios(box).find((radio) => radio.checked)?.value;

  function show() {
    const answer = answers[given.length];
    work.hidden = !answer;
    $("end").hidden = Boolean(answer);
    const total = answers.length + before;
    $("place").textContent = `Answer ${Math.min(given.length + before + 1, total)} of ${total}`;
    $("progress").max = total;
    $("progress").value = given.length + before;
    $("undo").disabled = $("undo-last").disabled = !given.length;
    $("fault").textContent = unkept ? "This browser keeps nothing, so save before you leave." : "";
    if (!answer) {
      $("done").focus();
      return;
    }
    $("query").textContent = answer.query;
    $("before").textContent = answer.before;
    $("before").hidden = !answer.before;
    $("expected").textContent = answer.expected;
    $("text").textContent = answer.answer;
    $("more").checked = false;
    $("more-label").hidden = !answer.facts.length;
    const boxes = answer.facts.map((fact, at) => group(`${at + 1}. ${fact.text}`, `f${at}`, statuses));
    $("ticks").replaceChildren(...(boxes.length ? boxes : [group("1. The answer is", "v", verdicts)]));
    scrollTo(0, 0);
    spent = 0;
    since = performance.now();
  }

  function push(label) {
    if (!document.hidden) spent += performance.now() - since;
    const seconds = Math.round(spent) / 1000;
    const at = `${new Date().toISOString().slice(0, 19)}+00:00`;
    given.push({ ...label, seconds, at });
    keep();
    show();
  }

  function next() {
    const answer = answers[given.length];
    if (!answer) return;
    const ticked = groups().map(chosen);
    if (ticked.includes(undefined)) {
      $("fault").textContent = "Something is not ticked yet.";
      radios(groups()[ticked.indexOf(undefined)])[0].focus();
      return;
    }
    const facts = answer.facts.map((fact, at) => ({ fact_id: fact.fact_id, status: ticked[at] }));
    const verdict = facts.length ? null : ticked[0];
    push({ skipped: false, verdict, facts, says_more: facts.length > 0 && $("more").checked });
  }

  function skip() {
    if (answers[given.length]) push({ skipped: true, verdict: null, facts: [], says_more: false });
  }

  function undo() {
    if (!given.length) return;
    given.pop();
    keep();
    show();
  }

  function row(label, at) {
    const { query_id, system, answer_sha256 } = answers[at];
    return { query_id, system, labeller, ...label, answer_sha256 };
  }

  function save() {
    const lines = given.map((label, at) => `${JSON.stringify(row(label, at))}\n`);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
    link.download = `answer-labels-${labeller.replace(/[^A-Za-z0-9]+/g, "-") || "people"}.jsonl`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  function cycle(box) {
    const all = radios(box);
    all[(all.findIndex((radio) => radio.checked) + 1) % all.length].checked = true;
  }

  function press(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    const key = event.key.toLowerCase();
    const box = groups()[Number(key) - 1];
    if (key === "enter" && !event.target.matches("button")) next();
    else if ("123456789".includes(key) && box) cycle(box);
    else if (key === "m" && !$("more-label").hidden) $("more").checked = !$("more").checked;
    else if (key === "s") skip();
    else if (key === "u") undo();
    else return;
    event.preventDefault();
  }

  document.addEventListener("keydown", press);
  $("next").addEventListener("click", next);
  $("skip").addEventListener("click", skip);
  for (const id of ["undo", "undo-last"]) $(id).addEventListener("click", undo);
  for (const id of ["save", "save-all"]) $(id).addEventListener("click", save);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) spent += performance.now() - since;
    else since = performance.now();
  });
  addEventListener("beforeunload", (event) => {
    if (unkept) event.preventDefault();
  });
  show();
  document.documentElement.dataset.ready = "yes";
})();
