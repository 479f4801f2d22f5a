"""What `prompts render` shows is what is sent."""

import asyncio
import json
import re
from contextlib import closing

import pytest
from endpoint import Reply, completion
from fakes import saying

from ragforge.cli import main
from ragforge.config import ModelSettings
from ragforge.files.set.opening import open_dataset
from ragforge.llm.store.calls import CallStore
from ragforge.pipeline.rendering import STAGES
from ragforge.prompts import load_prompt, prompt_names
from ragforge.records import Answer, Fact, Slot
from ragforge.stages.answer.facts import with_facts
from ragforge.stages.answer.llm import FactJudge, LLMAnswerJudge
from ragforge.stages.answer.stage import Case
from ragforge.stages.asking import Asker
from ragforge.stages.generate.candidates import Brief
from ragforge.stages.generate.llm import LLMQueryWriter
from ragforge.stages.ground.llm import LLMGrounder
from ragforge.stages.ground.parts import Exchange, Passage
from ragforge.stages.judge.llm import LLMJudge
from ragforge.stages.judge.pairs import Pair

GRADED = {"reasoning": "so", "evidence": "", "contains_answer": False, "grade": 0}
ABOUT_OAK = {"query": "What is oak?", "text": "Oak is a tree.", "reasoning": "defines it"}


@pytest.fixture
def render(capsys):
    """Run `ragforge prompts render` and return its exit code, stdout and stderr."""

    def go(*words):
        capsys.readouterr()
        code = main(["prompts", "render", *map(str, words)])
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return code, shown.out, shown.err

    return go


@pytest.fixture
def asked():
    """Return the messages that a stage's first question has, as JSON holds them."""

    def go(prompt, said, use):
        model = saying(json.dumps(said))
        settings = ModelSettings(name="m")
        asyncio.run(use(Asker(model, "m", settings, load_prompt(prompt))))
        return [{"role": turn.role, "content": turn.content} for turn in model.asked[0].messages]

    return go


@pytest.fixture
def answered(dataset):
    """The dataset with the answer of a system to one of its queries."""
    query = open_dataset(dataset).queries()[0]
    answer = Answer(
        query_id=query.query_id, answer="Ten euros.", chunk_ids=query.source_chunk_ids[:1]
    )
    open_dataset(dataset).write_answers("rag", [answer])
    return dataset


@pytest.fixture
def shots(tmp_path):
    """A file with an example of another query than those of the pairs."""
    path = tmp_path / "shots.jsonl"
    path.write_text(json.dumps({**ABOUT_OAK, "grade": 3, "evidence": "Oak is a tree."}))
    return path


@pytest.mark.parametrize("name", ["judge_relevance", "judge_relevance_umbrela_style"])
@pytest.mark.parametrize(("row", "text"), [(1, "Beeswax is wax."), (2, "Oak is a tree.")])
def test_the_messages_for_a_pair_of_a_file_are_the_judges(render, asked, pairs, name, row, text):
    """A prompt is tuned by what the model reads, not by what the file says."""
    pair = Pair("q1", "What is beeswax?", "x", text)
    sent = asked(name, GRADED, lambda asker: LLMJudge(asker).judge(pair))

    code, out, _ = render(name, "--pairs", pairs, "--row", row, "--json")

    assert code == 0
    assert json.loads(out)["messages"] == sent


def test_the_messages_for_a_pair_of_a_dataset_are_the_judges(render, asked, dataset):
    """The same from the files that the judge reads."""
    query = open_dataset(dataset).queries()[0]
    chunk = next(open_dataset(dataset).chunks())
    pair = Pair(query.query_id, query.query, chunk.chunk_id, chunk.text)
    sent = asked("judge_relevance", GRADED, lambda asker: LLMJudge(asker).judge(pair))

    where = ("--dataset", dataset, "--query", query.query_id, "--chunk", chunk.chunk_id)
    code, out, _ = render("judge_relevance", *where, "--json")

    assert code == 0
    assert json.loads(out)["messages"] == sent


@pytest.mark.parametrize(
    ("name", "listed", "query_type"),
    [
        ("generate_queries", "candidates", "fact"),
        ("generate_follow_ups", "follow_ups", "follow_up"),
        ("generate_unanswerable", "near_misses", "unanswerable"),
    ],
)
def test_the_messages_for_a_chunk_are_the_writers(render, asked, dataset, name, listed, query_type):
    """Generation is tuned by the same means."""
    chunk = next(open_dataset(dataset).chunks())
    slot = Slot(
        slot_id="000000-0",
        type=query_type,
        difficulty="medium",
        persona="newcomer",
        language="de",
        stratum="",
        chunk_ids=(chunk.chunk_id,),
        doc_ids=(chunk.doc_id,),
    )
    sent = asked(
        name,
        {listed: []},
        lambda asker: LLMQueryWriter({name: asker}, 0).write(Brief(slot, (chunk,)), ()),
    )

    where = ("--dataset", dataset, "--chunk", chunk.chunk_id, "--language", "de=80,en=20")
    code, out, _ = render(name, *where, "--json")

    assert code == 0
    assert json.loads(out)["messages"] == sent


def test_the_messages_for_an_answer_are_the_judges(render, asked, answered):
    """So is the grading of answers."""
    dataset = open_dataset(answered)
    [answer] = dataset.answers("rag")
    query = next(each for each in dataset.queries() if each.query_id == answer.query_id)
    texts = {chunk.chunk_id: chunk.text for chunk in dataset.chunks()}
    case = Case(query, answer.answer, (texts[answer.chunk_ids[0]],))
    said = {"explanation": "so", "unsupported": [], "verdict": "incorrect"}
    sent = asked("grade_answer", said, lambda asker: LLMAnswerJudge(asker).judge(case))

    where = ("--dataset", answered, "--query", query.query_id, "--answers", "rag")
    code, out, _ = render("grade_answer", *where, "--json")

    assert code == 0
    assert json.loads(out)["messages"] == sent


def test_what_is_rendered_is_what_the_command_sends(tmp_path, render, pairs, serve):
    """From the command line to the wire, with the key under which the reply is stored."""
    endpoint = serve()
    model = ("--model", "m", "--base-url", endpoint.url)
    out = tmp_path / "judged.jsonl"
    words = ["judge", "--pairs", str(pairs), "--out", str(out), "-q", "--concurrency", "1"]
    assert main([*words, *model]) == 0

    rendered = [
        json.loads(render("judge_relevance", "--pairs", pairs, "--row", row, *model, "--json")[1])
        for row in (1, 2)
    ]

    bodies = [seen.body for seen in endpoint.seen]
    assert [each["messages"] for each in rendered] == [body["messages"] for body in bodies]
    with closing(CallStore(tmp_path / ".ragforge" / "calls.sqlite")) as store:
        assert None not in [store.get(each["call_key"]) for each in rendered]
    assert set(rendered[0]["schema"]["properties"]) == set(GRADED)


def test_examples_are_rendered_as_the_command_sends_them(tmp_path, render, pairs, shots, serve):
    """What the judge was shown first is a part of what it was asked."""
    endpoint = serve()
    model = ("--model", "m", "--base-url", endpoint.url, "--examples", str(shots))
    out = tmp_path / "judged.jsonl"
    words = ["judge", "--pairs", str(pairs), "--out", str(out), "-q", "--concurrency", "1"]
    assert main([*words, *model]) == 0

    shown = json.loads(render("judge_relevance", "--pairs", pairs, *model, "--json")[1])

    assert shown["messages"] in [seen.body["messages"] for seen in endpoint.seen]
    row = json.loads(out.read_text(encoding="utf-8").splitlines()[0])
    assert re.fullmatch("examples [0-9a-f]{8}", row["provenance"]["protocol"])


def test_a_batch_is_rendered_as_the_command_sends_it(tmp_path, render, pairs, serve):
    """Ids and order are drawn from the texts, and shown as they will be."""
    endpoint = serve(lambda path, body, number: Reply(completion({"verdicts": []})))
    model = ("--model", "m", "--base-url", endpoint.url)
    words = ["judge", "--pairs", str(pairs), "--out", str(tmp_path / "judged.jsonl"), "-q"]
    main([*words, *model, "--batch", "2", "--permutations", "1"])

    out = render("judge_relevance_batch", "--pairs", pairs, "--row", 2, "--batch", 2, "--json")[1]

    assert json.loads(out)["messages"] == endpoint.seen[0].body["messages"]


def test_chunks_of_a_dataset_are_rendered_as_a_batch(render, dataset):
    """A prompt for batches is tuned on the dataset that it will judge."""
    query = open_dataset(dataset).queries()[0]
    chunks = list(open_dataset(dataset).chunks())[:3]
    ids = [word for chunk in chunks for word in ("--chunk", chunk.chunk_id)]

    where = ("--dataset", dataset, "--query", query.query_id)
    code, out, _ = render("judge_relevance_batch", *where, *ids, "--json")

    turn = json.loads(out)["messages"][-1]["content"]
    assert code == 0
    assert [json.dumps(chunk.text, ensure_ascii=False) in turn for chunk in chunks] == [True] * 3


def test_the_messages_about_facts_are_those_of_their_stages(render, asked, answered):
    """Facts are drawn by one prompt and held against the answer by another."""
    dataset = open_dataset(answered)
    [answer] = dataset.answers("rag")
    plain = next(each for each in dataset.queries() if each.query_id == answer.query_id)
    fact = Fact(fact_id="f1", text=plain.expected_answer)
    query = plain.model_copy(update={"facts": (fact,)})
    dataset.write_queries([query])
    texts = {chunk.chunk_id: chunk.text for chunk in dataset.chunks()}
    case = Case(query, answer.answer, (texts[answer.chunk_ids[0]],))
    drawn = {"facts": [{"statement": plain.expected_answer, "importance": "vital"}]}
    judged = {"facts": [{"id": "f1", "quote": "", "status": "missing"}], "claims": []}
    drawing = asked("extract_facts", drawn, lambda asker: with_facts(plain, asker))
    grading = asked("grade_facts", judged, lambda asker: FactJudge(asker).judge(case))

    where = ("--dataset", answered, "--query", query.query_id, "--json")
    found = [
        render("extract_facts", *where)[1],
        render("grade_facts", *where, "--answers", "rag")[1],
    ]

    assert [json.loads(each)["messages"] for each in found] == [drawing, grading]


def test_the_messages_about_claims_are_the_grounders(render, asked, answered):
    """What is not in the dataset is not shown."""
    dataset = open_dataset(answered)
    [answer] = dataset.answers("rag")
    query = next(each for each in dataset.queries() if each.query_id == answer.query_id)
    dataset.write_answers(
        "rag", [answer.model_copy(update={"chunk_ids": (*answer.chunk_ids, "x")})]
    )
    texts = {chunk.chunk_id: chunk.text for chunk in dataset.chunks()}
    [chunk_id] = answer.chunk_ids
    passages = (Passage(chunk_id, texts[chunk_id]),)
    exchange = Exchange(query.query_id, query.query, answer.answer, passages, ("x",))
    said = {"claims": [], "no_claim": ["Ten euros."]}
    sent = asked("check_claims", said, lambda asker: LLMGrounder(asker).judge(exchange))

    where = ("--dataset", answered, "--query", query.query_id, "--answers", "rag", "--json")

    assert json.loads(render("check_claims", *where)[1])["messages"] == sent


def test_an_answer_that_a_rule_settles_is_told(render, answered):
    """Messages that nobody sends would mislead."""
    dataset = open_dataset(answered)
    [answer] = dataset.answers("rag")
    dataset.write_answers("rag", [answer.model_copy(update={"answer": ""})])

    words = ("--dataset", answered, "--query", answer.query_id, "--answers", "rag")
    code, _, err = render("check_claims", *words)

    assert code == 3
    assert "nothing would be asked: a rule decides" in err


@pytest.mark.parametrize("name", prompt_names())
def test_each_shipped_prompt_can_be_rendered(name):
    """A prompt that cannot be looked at filled in is written blindly."""
    assert load_prompt(name).schema in STAGES


def test_nothing_is_asked(render, pairs, serve):
    """It costs nothing, whatever model is named."""
    endpoint = serve()

    render("judge_relevance", "--pairs", pairs, "--model", "m", "--base-url", endpoint.url)

    assert endpoint.seen == []


def test_without_a_model_there_is_no_key(render, pairs):
    """The offline baseline asks nothing, so nothing is stored for it."""
    _, out, _ = render("judge_relevance", "--pairs", pairs, "--json")

    assert json.loads(out)["call_key"] is None


def test_the_turns_stand_under_their_roles(render, pairs):
    """A reader sees at once who says what."""
    code, out, _ = render("judge_relevance", "--pairs", pairs)

    assert code == 0
    assert out.startswith("[system]\nYou grade how well")
    assert "\n\n[user]\n<<DATA-" in out
    assert out.endswith(">>\nGrade the passage for the query.\n")


def test_an_override_is_rendered(tmp_path, render, pairs):
    """It is what a rubric is written with."""
    main(["prompts", "copy", "judge_relevance", "--to", str(tmp_path / "mine")])
    path = tmp_path / "mine" / "judge_relevance.toml"
    path.write_text(path.read_text().replace("You grade", "In the field of law, you grade"))

    _, out, _ = render("judge_relevance", "--pairs", pairs, "--prompts-dir", tmp_path / "mine")

    assert "[system]\nIn the field of law, you grade" in out


def test_examples_stand_before_the_pair(render, pairs, shots):
    """Few-shot turns are a part of what is sent."""
    _, out, _ = render("judge_relevance", "--pairs", pairs, "--examples", shots, "--json")

    turns = json.loads(out)["messages"]
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "user"]
    assert json.loads(turns[2]["content"])["evidence"] == "Oak is a tree."


def test_examples_of_the_query_itself_are_refused(render, pairs, shots):
    """As the judge refuses them."""
    shots.write_text(shots.read_text().replace("What is oak", "what is  BEESWAX"))

    code, _, err = render("judge_relevance", "--pairs", pairs, "--examples", shots)

    assert code == 2
    assert "query 'q1' ('what is  BEESWAX?') is one of those to be judged" in err


def test_examples_do_not_go_with_batches(render, pairs, shots):
    """They show how one passage is graded."""
    words = ("judge_relevance_batch", "--pairs", pairs, "--batch", "2", "--examples", shots)
    code, _, err = render(*words)

    assert code == 2
    assert "examples go with prompts for 'relevance' only" in err


def test_hidden_characters_are_shown_and_in_json_kept(tmp_path, render, pairs):
    """A terminal must not obey somebody's prompt; a script wants the very bytes."""
    main(["prompts", "copy", "judge_relevance", "--to", str(tmp_path / "mine")])
    path = tmp_path / "mine" / "judge_relevance.toml"
    path.write_text(path.read_text().replace("You grade", "You \u202egrade"))
    words = ("judge_relevance", "--pairs", pairs, "--prompts-dir", tmp_path / "mine")

    shown, exact = render(*words)[1], render(*words, "--json")[1]

    assert shown.startswith("[system]\nYou \\u202egrade how")
    assert json.loads(exact)["messages"][0]["content"].startswith("You \u202egrade how")


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("judge_relevance", ["--row", "3"], "has fewer pairs"),
        ("judge_relevance", ["--row", "0"], "--row 0: expected a whole number from 1"),
        ("judge_relevance", ["--chunk", "x"], "go with --dataset, not with --pairs"),
        ("generate_queries", [], "give --dataset DIR with --chunk CHUNK_ID"),
        ("grade_answer", [], "with --query QUERY_ID and --answers NAME"),
        ("nobody", [], "no prompt 'nobody'"),
    ],
)
def test_what_cannot_be_rendered_from_a_file_of_pairs_is_told(render, pairs, name, words, message):
    """Each says what to give instead."""
    code, out, err = render(name, "--pairs", pairs, *words)

    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("judge_relevance", [], "give --dataset DIR with --query QUERY_ID and --chunk"),
        ("judge_relevance", ["--row", "1"], "--row goes with --pairs, not with --dataset"),
        ("judge_relevance", ["--query", "x", "--chunk", "y"], "has no 'x'; it has 3 queries, such"),
        ("generate_queries", ["--chunk", "y"], "chunks.jsonl has no 'y'"),
        ("extract_facts", [], "give --dataset DIR with --query QUERY_ID"),
        ("judge_relevance_batch", ["--chunk", "y"], "and --chunk CHUNK_ID twice or more"),
        ("check_claims", [], "with --query QUERY_ID and --answers NAME"),
    ],
)
def test_what_cannot_be_rendered_from_a_dataset_is_told(render, dataset, name, words, message):
    """Ids are typed by hand."""
    code, out, err = render(name, "--dataset", dataset, *words)

    assert (code, out) == (2, "")
    assert message in err


def test_an_answer_that_is_not_there_is_told(render, answered):
    """The system answered another query."""
    dataset = open_dataset(answered)
    other = {each.query_id for each in dataset.queries()} - {dataset.answers("rag")[0].query_id}

    words = ("--dataset", answered, "--query", min(other), "--answers", "rag")
    code, _, err = render("grade_answer", *words)

    assert code == 2
    assert "--answers: rag does not answer '" in err


def test_an_answer_whose_query_has_no_facts_is_told(render, answered):
    """Facts are drawn before an answer is held against them."""
    [answer] = open_dataset(answered).answers("rag")

    words = ("--dataset", answered, "--query", answer.query_id, "--answers", "rag")
    code, _, err = render("grade_facts", *words)

    assert code == 3
    assert "nothing would be asked: the query has no facts" in err
