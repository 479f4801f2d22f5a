"""Corpora that are small, dull, in other scripts, or far too large."""

import pytest
from pipeline.generation.making import accepted, at, endpoint, generate, problems, run

SENTENCE = "The harbour office opens at seven in the morning and closes when the last boat is in.\n"


@pytest.fixture(scope="module")
def running():
    """An endpoint for all runs."""
    with endpoint() as served:
        yield served


@pytest.fixture
def corpus(tmp_path):
    """Write documents, and return their folder."""

    def write(**documents):
        folder = tmp_path / "docs"
        folder.mkdir()
        for name, text in documents.items():
            (folder / f"{name}.md").write_text(text, encoding="utf-8")
        return folder

    return write


def test_a_corpus_of_one_sentence_gives_what_it_can(corpus, tmp_path, running):
    """Five questions about one sentence would be one question five times."""
    done = generate(tmp_path / "set", *at(running), n=20, documents=corpus(a=SENTENCE))

    assert done.code == 5
    assert "queries; the corpus carries no more" in done.err
    assert 1 <= len(accepted(tmp_path / "set")) < 20
    assert problems(tmp_path / "set") == []


def test_an_empty_corpus_is_told(corpus, tmp_path, running):
    """Nothing can be asked about nothing."""
    done = generate(tmp_path / "set", *at(running), documents=corpus(a="\n \n"))

    assert done.code == 3
    assert "docs" in done.err


def test_ten_thousand_copies_are_one_document(tmp_path, running):
    """A boilerplate page per customer must be neither asked about nor judged 10,000 times."""
    rows = (
        f'{{"chunk_id": "c{at:05}", "doc_id": "d{at:05}", "text": "{SENTENCE.strip()}"}}\n'
        for at in range(10_000)
    )
    path = tmp_path / "chunks.jsonl"
    path.write_text("".join(rows))
    asked = len(running.seen)

    done = run(
        ["generate", "--chunks", str(path), "-n", "6", "--out", str(tmp_path / "set"), *at(running)]
    )

    assert done.code == 5
    assert "3 of 6 queries" in done.err
    assert "3 sources were tried, and all are used up" in done.err
    assert len(running.seen) - asked < 60
    assert problems(tmp_path / "set") == []


TABLE = "| part | price in euros | made of |\n|---|---|---|\n" + "".join(
    f"| {name} | {price} | {stuff} |\n"
    for name, price, stuff in [
        ("hinge", 4, "brass"),
        ("drawer runner", 19, "galvanised steel"),
        ("table leg", 35, "solid walnut"),
        ("cabinet knob", 7, "glazed porcelain"),
    ]
)
CODE = '''```python
def deliver(parcel, address, express=False):
    """Send a parcel; express ones leave before noon."""
    if parcel.weight_kg > 23:
        raise TooHeavyError("use freight for heavy parcels")
    return courier.book(parcel, address, priority=2 if express else 1)
```
'''
CHINESE = "# 配送\n\n我们在荷兰配送家具、周一到周五送货、包裹最重二十三公斤、最长边不超过一米。\n"
CHINESE_TOO = "# 退货\n\n三十天内可以退回商品、运费由顾客承担、退款五天后到账、礼品卡不能退。\n"
ARABIC = "# التوصيل\n\nنوصل الأثاث إلى هولندا وبلجيكا. أقصى وزن للطرد هو ثلاثة وعشرون كيلوغراما.\n"


@pytest.mark.parametrize(
    "documents",
    [
        {"a": TABLE, "b": f"# Prices of parts\n\n{TABLE}"},
        {"a": CODE, "b": CODE.replace("deliver", "collect").replace("parcel", "pallet")},
        {"a": CHINESE, "b": CHINESE_TOO},
        {"a": ARABIC, "b": ARABIC.replace("الأثاث", "الكتب")},
        {"a": CHINESE + SENTENCE, "b": ARABIC + SENTENCE, "c": SENTENCE + "Le port ferme tôt.\n"},
    ],
    ids=["tables", "code", "chinese", "arabic", "mixed"],
)
def test_other_texts_give_queries_or_reasons(corpus, tmp_path, running, documents):
    """Whatever a corpus is made of, the set is sound, and a shortfall is explained."""
    done = generate(tmp_path / "set", *at(running), n=2, documents=corpus(**documents))

    assert (done.code, len(accepted(tmp_path / "set"))) == (0, 2), done.err
    assert problems(tmp_path / "set") == []


def test_a_document_of_five_megabytes_is_cut_like_any_other(corpus, tmp_path, running):
    """A log or a book that somebody dropped into the folder must not stop the rest."""
    book = "".join(
        f"## Entry {at}\n\nKeeper {at * 7919 % 10007} met {at} ships near pier {at % 97}, and "
        f"noted the tide at {at % 24} hours. {SENTENCE}\n"
        for at in range(30_000)
    )
    assert len(book) > 5_000_000

    done = generate(tmp_path / "set", *at(running), n=2, documents=corpus(a=book, b=TABLE))

    assert done.code == 0
    assert problems(tmp_path / "set") == []
