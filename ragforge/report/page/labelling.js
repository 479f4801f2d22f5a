{
  const $ = (id) => document.getElementById(id);
  let session;

  labelSession({
    file: "labels",
    skipped: { grade: null, skipped: true },
    isLabel: ({ grade, skipped }) => (skipped ? grade === null : [0, 1, 2, 3].includes(grade)),
    identity: ({ query_id, chunk_id, look, decides, text_sha256, wording_sha256 }) => ({
      query_id, chunk_id, look, decides, text_sha256, wording_sha256,
    }),

    begin(begun) {
      session = begun;
      for (const button of document.querySelectorAll("button.grades")) {
        button.addEventListener("click", () => this.grade(Number(button.dataset.grade)));
      }
    },

    grade(grade) {
      session.label({ grade, skipped: false });
    },

    show(pair) {
      $("answer").textContent = pair.answer;
      $("expected").hidden = !pair.answer;
      $("expected").open = false;
      $("settle").hidden = !pair.decides;
      $("settle").textContent = pair.decides ? `Given so far: ${pair.given.join(" and ")}.` : "";
    },

    press(key) {
      if ("0123".includes(key)) this.grade(Number(key));
      else if (key === "a" && !$("expected").hidden) $("expected").open = !$("expected").open;
      else return false;
      return true;
    },
  });
}
