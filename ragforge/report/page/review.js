"use strict";
(() => {
  const EDITS = ["new_query", "new_standalone", "new_answer"];
  const items = [...document.querySelectorAll("article.item")];
  const { sheet, post } = document.getElementById("items").dataset;
  const done = document.getElementById("done");
  const kept = read();

  function read() {
    try {
      const found = JSON.parse(localStorage.getItem(sheet) || "{}");
      return found && typeof found === "object" ? found : {};
    } catch {
      return {};
    }
  }

  function keep() {
    try {
      localStorage.setItem(sheet, JSON.stringify(kept));
    } catch {
      done.dataset.unkept = "yes";
    }
  }

  const radios = (item) => [...item.querySelectorAll("input[type=radio]")];
  const field = (item, name) => item.querySelector(`[name="${name}"]`);
  const chosen = (item) => radios(item).find((radio) => radio.checked)?.value || "";
  // To be undecided is a choice too: it takes a decision back.
  const settles = (word) => Boolean(word) && word !== "undecided";

  function changed(item, name) {
    const box = field(item, name);
    if (!box || chosen(item) !== "edit") return "";
    const text = box.value.trim();
    return text === box.defaultValue.trim() ? "" : text;
  }

  function row(item) {
    const found = {
      query_id: item.dataset.queryId,
      revision: Number(item.dataset.revision),
      state: item.dataset.state || "",
      reviewer: item.dataset.reviewer,
      random: item.dataset.random,
      decision: chosen(item),
    };
    for (const name of EDITS) found[name] = changed(item, name);
    found.note = field(item, "note").value.trim();
    return found;
  }

  function fault(item) {
    if (chosen(item) !== "edit") return "";
    const alone = field(item, "new_standalone");
    if (alone && !changed(item, "new_query") !== !changed(item, "new_standalone")) {
      return "Question and what it asks alone go together: change both.";
    }
    return EDITS.some((name) => changed(item, name)) || item.dataset.decision === "edit"
      ? "" : "Nothing is changed yet.";
  }

  function show(item) {
    item.querySelector(".edits").hidden = chosen(item) !== "edit";
    item.querySelector(".fault").textContent = fault(item);
  }

  const isDecided = (item) =>
    post ? settles(item.dataset.decision) || Boolean(item.dataset.by) : settles(chosen(item));

  function count() {
    const decided = items.filter(isDecided).length;
    const parts = [`${decided} of ${items.length} decided`];
    if (done.dataset.unkept && !post) parts.push("the browser keeps nothing, so save before you leave");
    if (waiting.length) parts.push(`${waiting.length} not kept yet`);
    const refused = items.flatMap((item, at) => (item.dataset.refused ? [at + 1] : []));
    if (refused.length) parts.push(`not kept: query ${refused.join(", ")}`);
    if (done.dataset.fault) parts.push(done.dataset.fault);
    const text = parts.join("; ");
    if (done.textContent !== text) done.textContent = text;
  }

  // On a site each decision is sent at once, one after the other, and again while nobody answers.

  const waiting = [];
  let sending = false;
  // Arrow keys go through the choices, and Enter takes one.
  let byArrow = false;

  function send(item, overrule = false) {
    delete item.dataset.refused;
    item.querySelector(".conflict").hidden = true;
    const at = waiting.findIndex((one, place) => place > 0 && one.item === item);
    if (at > 0) waiting.splice(at, 1);
    waiting.push({ item, row: { ...row(item), overrule } });
    count();
    flush();
  }

  async function flush() {
    if (sending) return;
    sending = true;
    let again = 0;
    while (waiting.length && !again) {
      const { item, row: what } = waiting[0];
      const open = items.filter((one) => one !== item && !isDecided(one)).map((one) => one.dataset.queryId);
      // What was decided about this query just before changed its state.
      const body = { ...what, revision: Number(item.dataset.revision), state: item.dataset.state, open };
      try {
        const reply = await fetch(post, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify(body),
        });
        delete done.dataset.fault;
        if (reply.ok) taken(item, what, await reply.json());
        else await refused(item, reply);
        waiting.shift();
      } catch {
        done.dataset.fault = "the server cannot be reached, it is tried again";
        again = setTimeout(flush, 3000);
      }
      count();
    }
    sending = false;
  }

  function taken(item, what, now) {
    Object.assign(item.dataset, { state: now.state, revision: now.revision, decision: what.decision });
    const texts = { new_query: now.query, new_standalone: now.standalone, new_answer: now.answer };
    for (const [name, text] of Object.entries(texts)) {
      const box = field(item, name);
      if (box) box.defaultValue = text;
    }
    delete item.dataset.by;
    item.querySelector("h2 span").textContent = now.query;
    item.querySelector(".fault").textContent = now.former_grades
      ? `Grades of people for the former words, which do not count now: ${now.former_grades}.`
      : "";
    delete kept[`q:${item.dataset.queryId}`];
    keep();
    for (const other of items) {
      const id = other.dataset.queryId;
      if (!Object.hasOwn(now.others, id)) continue;
      const words = now.others[id];
      other.dataset.by = words;
      other.querySelector(".fault").textContent = `Meanwhile ${words}.`;
    }
  }

  async function refused(item, reply) {
    const isJson = (reply.headers.get("Content-Type") || "").startsWith("application/json");
    const said = isJson ? await reply.json() : { error: await spoken(reply) };
    item.dataset.refused = "yes";
    item.querySelector(".fault").textContent = `Not kept: ${said.error}.`;
    item.querySelector(".conflict").hidden = !said.changed && !said.contradicted;
    item.querySelector(".reload").hidden = !said.changed;
    item.querySelector(".overrule").hidden = !said.contradicted;
    // Nobody is torn out of a field.
    if (!document.activeElement.matches("textarea, input[type=text]")) go(item);
  }

  async function spoken(reply) {
    if (reply.status === 401) return "the server was started again: open its new address";
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    return page.querySelector(".notice p")?.textContent || `the server says ${reply.status}`;
  }

  function keepEdit(item) {
    note(item);
    if (fault(item)) return;
    send(item);
    goOn(item);
  }

  function note(item) {
    const texts = {};
    for (const name of [...EDITS, "note"]) {
      const box = field(item, name);
      if (box && box.value !== box.defaultValue) texts[name] = box.value;
    }
    kept[`q:${item.dataset.queryId}`] = { decision: chosen(item), texts, state: item.dataset.state };
    keep();
    show(item);
    count();
  }

  function restore(item) {
    let old = kept[`q:${item.dataset.queryId}`] || { decision: item.dataset.decision, texts: {} };
    // On a site only what was typed is the browser's to keep; an edit is decided when it was sent.
    if (post) old = { ...old, decision: old.decision === "edit" ? "edit" : item.dataset.decision };
    for (const radio of radios(item)) radio.checked = radio.value === old.decision;
    for (const [name, text] of Object.entries(old.texts || {})) {
      const box = field(item, name);
      if (box) box.value = String(text);
    }
    item.querySelector("fieldset").hidden = false;
    show(item);
    if (post && old.state && old.state !== item.dataset.state) {
      item.querySelector(".fault").textContent = "You typed this before it was changed: look again.";
    }
  }

  function save() {
    const faulty = items.find((item) => fault(item));
    if (faulty) return go(faulty);
    // What was drawn and left open goes along: to leave the hard ones out flatters the set.
    const rows = items.map(row).filter((found) => found.decision || found.random);
    const blob = new Blob([`${JSON.stringify(rows, null, 1)}\n`], { type: "application/json" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = "review.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  function go(item) {
    kept.at = item.dataset.queryId;
    keep();
    item.focus();
    item.scrollIntoView({ block: "start" });
  }

  function decide(item, letter) {
    const radio = radios(item).find((one) => one.value[0] === letter);
    if (!radio) return;
    radio.checked = true;
    note(item);
    if (letter === "e") field(item, "new_query").focus();
    else {
      if (post) send(item);
      if (letter !== "u") goOn(item);
    }
  }

  // To the next that is open, else to the next.
  function goOn(item) {
    const behind = items.slice(items.indexOf(item) + 1);
    const next = behind.find((one) => !(isDecided(one) || settles(chosen(one)))) || behind[0];
    if (next) go(next);
  }

  function press(event) {
    const here = document.activeElement;
    const item = here.closest("article.item");
    const isEdit = post && item && chosen(item) === "edit";
    if (isEdit && (event.ctrlKey || event.metaKey) && event.key === "Enter") return keepEdit(item);
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (here.matches("textarea, input[type=text]")) {
      if (event.key === "Escape") item.focus();
      return;
    }
    byArrow = event.key.startsWith("Arrow");
    if (byArrow) return;
    const at = items.indexOf(item);
    if (post && here.matches("input[type=radio]") && event.key === "Enter") decide(item, here.value[0]);
    else if (event.key === "j" && at + 1 < items.length) go(items[at + 1]);
    else if (event.key === "k" && at > 0) go(items[at - 1]);
    else if (item && "aerpu".includes(event.key)) decide(item, event.key);
    else return;
    event.preventDefault();
  }

  items.forEach(restore);
  for (const item of items) {
    item.addEventListener("input", () => note(item));
    item.addEventListener("focusin", () => {
      kept.at = item.dataset.queryId;
      keep();
    });
  }
  document.addEventListener("keydown", press);
  document.addEventListener("keyup", () => (byArrow = false));
  document.getElementById("save")?.addEventListener("click", save);
  for (const item of post ? items : []) {
    for (const radio of radios(item)) {
      radio.addEventListener("change", () => byArrow || radio.value === "edit" || send(item));
    }
    field(item, "note").addEventListener("change", () => {
      if (settles(chosen(item)) && chosen(item) !== "edit" && chosen(item) === item.dataset.decision) send(item);
    });
    item.querySelector(".keep").addEventListener("click", () => keepEdit(item));
    item.querySelector(".reload").addEventListener("click", () => location.reload());
    item.querySelector(".overrule").addEventListener("click", () => send(item, true));
  }
  addEventListener("beforeunload", (event) => {
    if (waiting.length) event.preventDefault();
  });
  document.querySelector(".bar").hidden = false;
  count();
  const last = items.find((item) => item.dataset.queryId === kept.at);
  if (last) go(last);
})();
