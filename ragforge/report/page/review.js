"use strict";
(() => {
  const EDITS = ["new_query", "new_standalone", "new_answer"];
  const items = [...document.querySelectorAll("article.item")];
  const sheet = document.getElementById("items").dataset.sheet;
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

  function count() {
    const decided = items.filter((item) => chosen(item)).length;
    const lost = done.dataset.unkept ? "; the browser keeps nothing, so save before you leave" : "";
    done.textContent = `${decided} of ${items.length} decided${lost}`;
  }

  function note(item) {
    const texts = {};
    for (const name of [...EDITS, "note"]) {
      const box = field(item, name);
      if (box && box.value !== box.defaultValue) texts[name] = box.value;
    }
    kept[`q:${item.dataset.queryId}`] = { decision: chosen(item), texts };
    keep();
    show(item);
    count();
  }

  function restore(item) {
    const old = kept[`q:${item.dataset.queryId}`] || { decision: item.dataset.decision, texts: {} };
    for (const radio of radios(item)) radio.checked = radio.value === old.decision;
    for (const [name, text] of Object.entries(old.texts || {})) {
      const box = field(item, name);
      if (box) box.value = String(text);
    }
    item.querySelector("fieldset").hidden = false;
    show(item);
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
    else goOn(item);
  }

  // To the next that is open, else to the next.
  function goOn(item) {
    const behind = items.slice(items.indexOf(item) + 1);
    const next = behind.find((one) => !chosen(one)) || behind[0];
    if (next) go(next);
  }

  function press(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const here = document.activeElement;
    const item = here.closest("article.item");
    if (here.matches("textarea, input[type=text]")) {
      if (event.key === "Escape") item.focus();
      return;
    }
    const at = items.indexOf(item);
    if (event.key === "j" && at + 1 < items.length) go(items[at + 1]);
    else if (event.key === "k" && at > 0) go(items[at - 1]);
    else if (item && "aerp".includes(event.key)) decide(item, event.key);
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
  document.getElementById("save").addEventListener("click", save);
  document.querySelector(".bar").hidden = false;
  count();
  const last = items.find((item) => item.dataset.queryId === kept.at);
  if (last) go(last);
})();
