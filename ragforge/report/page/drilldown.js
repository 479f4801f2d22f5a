"use strict";
/* What is shown of a query when it is opened. Data goes in as text, never as markup. */
const drilldown = (index, rows, h, number) => {
  // A text that is cut comes with a note.
  const parts = (text) => [text].flat();

  function noted(of, tag = "p", name = "quote") {
    const [text, note] = parts(of);
    return h(tag, { class: name, dir: "auto" }, text, note && h("span", { class: "cut" }, `… ${note}`));
  }

  function marked(text, marks) {
    const points = [...text];
    const pieces = [];
    let at = 0;
    for (let place = 0; place < marks.length; place += 2) {
      const [start, end] = [marks[place], marks[place + 1]];
      pieces.push(points.slice(at, start).join(""));
      pieces.push(h("mark", null, points.slice(start, end).join("")));
      at = end;
    }
    return [...pieces, points.slice(at).join("")];
  }

  function badge(grade) {
    if (grade >= 0) {
      const label = `grade ${grade}: ${index.grades[grade]}`;
      return h("span", { class: `grade g${grade}`, title: label }, String(grade));
    }
    const signs = {
      "-2": ["!", "judging failed"],
      "-3": ["+", "listed as relevant, without a grade"],
      "-4": ["\u2212", "not listed, so not relevant"],
    };
    const [sign, label] = signs[grade] || ["?", "not judged"];
    return h("span", { class: "grade none", title: label }, sign);
  }

  function chunkText(start, marks) {
    if (!start) return h("p", { class: "empty" }, "The text of this chunk is not in the dataset.");
    const [, before, text, note] = start;
    return h("p", { class: "quote", dir: "auto" },
      before && h("span", { class: "cut" }, "… "),
      ...marked(text, marks),
      note && h("span", { class: "cut" }, `… ${note}`));
  }

  function hit(opened, place, where) {
    const { query } = opened;
    const chunk = query.chunks[place];
    const start = opened.start(chunk);
    const reason = query.reasons[place];
    const reply = query.replies[query.reply[place]];
    return h("li", null,
      h("div", { class: "hit" },
        badge(query.grades[place]),
        h("span", { class: "rank" }, where),
        h("code", null, opened.chunks[chunk]),
        h("span", { class: "where", dir: "auto" }, start?.[0] || ""),
        h("span", { class: "where" }, index.sources[query.sources[place]])),
      chunkText(start, query.marks[place] || []),
      reason && noted(reason, "p", "reason"),
      reply && h("details", { class: "raw" },
        h("summary", null, "Raw reply of the judge"), noted(reply, "pre", "")));
  }

  function ranking(opened, run) {
    const found = opened.query.runs[run];
    const value = rows.value[run][opened.row];
    const first = rows.first[run][opened.row];
    const facts = [
      `${index.measure} ${number(value)}`,
      index.states[rows.state[run][opened.row]],
      first ? `first relevant at rank ${first}` : value === null ? ""
        : index.ofEvidence ? (value ? "" : "no evidence found")
        : `no relevant chunk found${value ? ", by lower grades alone" : ""}`,
      index.causes[rows.cause[run][opened.row]],
    ];
    const missed = found.missed.map(([place, rank]) =>
      hit(opened, place, rank ? `rank ${rank}` : "not retrieved"));
    const some = missed.length < found.nMissed ? `, ${missed.length} shown` : "";
    return h("section", { class: "ranking" },
      h("h4", null, h("span", { class: `dot tone-${run % 6}` }), h("bdi", null, index.runs[run])),
      h("p", { class: "note" }, facts.filter(Boolean).join(" · ")),
      h("h5", null, `Retrieved: top ${found.top.length} of ${found.n}`),
      found.top.length
        ? h("ol", { class: "hits" },
          ...found.top.map((place, at) => hit(opened, place, `rank ${at + 1}`)))
        : h("p", { class: "empty" }, "Nothing was retrieved."),
      missed.length
        ? h("h5", null, `Relevant, but not in the top ${index.depth}: ${found.nMissed}${some}`)
        : null,
      missed.length ? h("ol", { class: "hits missed" }, ...missed) : null);
  }

  function answered(answer) {
    const verdict = answer.verdict || "no grade";
    const claims = answer.hallucinates ? ", claims what no chunk says" : "";
    return [
      h("h4", null, "Answer of ", h("bdi", null, answer.system), `: ${verdict}${claims}`),
      answer.text !== null ? noted(answer.text) : h("p", { class: "empty" }, "None."),
      answer.reason ? noted(answer.reason, "p", "reason") : null,
    ];
  }

  // Why there is nothing to show of a query.
  function absent({ isLate, isGone }) {
    if (isLate) return "Loading …";
    if (!isGone) return "What was retrieved was left out to keep the page small: it is not among the worst.";
    const folder = decodeURIComponent(index.files.split("/")[1]);
    return `What was retrieved is in the folder ${folder}, which is not beside this page or belongs to a newer one. ` +
      "Put it there, or open the page again.";
  }

  function body(opened) {
    const { row, query } = opened;
    const facts = index.facets.map((facet, place) => facet.values[rows.facets[place][row]]);
    const title = h("h3", { dir: "auto" }, query ? parts(query.text)[0] : rows.text[row]);
    const head = [
      title,
      query && parts(query.text)[1] && h("p", { class: "cut" }, parts(query.text)[1]),
      h("p", { class: "id" }, h("code", null, rows.id[row]), ` ${facts.filter(Boolean).join(" · ")}`),
    ];
    if (!query) return [...head, h("p", { class: "empty", role: "status" }, absent(opened))];
    const none = query.answerable ? "None is recorded." : "None: the corpus does not tell, by intent.";
    return [
      ...head,
      h("h4", null, "Expected answer"),
      query.answer !== null ? noted(query.answer) : h("p", { class: "empty" }, none),
      query.evidence.length ? h("h4", null, "Evidence") : null,
      ...query.evidence.map((quote) => h("blockquote", null, noted(quote))),
      ...query.answers.flatMap(answered),
      h("div", { class: "rankings" }, ...index.runs.map((_, run) => ranking(opened, run))),
    ];
  }

  return body;
};
