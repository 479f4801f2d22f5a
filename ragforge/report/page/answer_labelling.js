{
  const $ = (id) => document.getElementById(id);
  const statuses = JSON.parse($("work").dataset.statuses);
  const verdicts = JSON.parse($("work").dataset.verdicts);
  let session;

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

  function next() {
    const answer = session.item();
    if (!answer) return;
    const ticked = groups().map(chosen);
    if (ticked.includes(undefined)) {
      session.fault("something is not ticked yet");
      radios(groups()[ticked.indexOf(undefined)])[0].focus();
      return;
    }
    const facts = answer.facts.map((fact, at) => ({ fact_id: fact.fact_id, status: ticked[at] }));
    const verdict = facts.length ? null : ticked[0];
    session.label({ skipped: false, verdict, facts, says_more: facts.length > 0 && $("more").checked });
  }

  function cycle(box) {
    const all = radios(box);
    all[(all.findIndex((radio) => radio.checked) + 1) % all.length].checked = true;
  }

  labelSession({
    file: "answer-labels",
    skipped: { skipped: true, verdict: null, facts: [], says_more: false },
    isLabel: ({ skipped, facts, verdict }) =>
      Array.isArray(facts) && (skipped === true || facts.length > 0 || Boolean(verdict)),
    identity: ({ query_id, system, answer_sha256, expected_sha256, facts_sha256 }) => ({
      query_id,
      system,
      answer_sha256,
      expected_sha256,
      facts_sha256,
    }),

    begin(begun) {
      session = begun;
      $("next").addEventListener("click", next);
    },

    show(answer) {
      $("expected").textContent = answer.expected;
      $("more").checked = false;
      $("more-label").hidden = !answer.facts.length;
      const boxes = answer.facts.map((fact, at) => group(`${at + 1}. ${fact.text}`, `f${at}`, statuses));
      $("ticks").replaceChildren(...(boxes.length ? boxes : [group("1. The answer is", "v", verdicts)]));
    },

    press(key, event) {
      const box = groups()[Number(key) - 1];
      if (key === "enter" && !event.target.matches("button")) next();
      else if ("123456789".includes(key) && box) cycle(box);
      else if (key === "m" && !$("more-label").hidden) $("more").checked = !$("more").checked;
      else return false;
      return true;
    },
  });
}
