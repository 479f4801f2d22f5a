import pytest
from changed_corpora import chunks_of
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.corpus.quote_locations import ChunkIndex, Page, fold
from ragforge.refresh.quotes.similar import in_percent, most_similar

QUOTE = "A client waits for five seconds and then gives up with an error that names the phase."


def page(text):
    return Page(chunks_of({"a": text}))


def stretch(text, quote=QUOTE, least=0.8):
    found = most_similar(quote, page(text), least)
    return found and found.placement.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "It is so. Each client waits for six seconds and then gives up with an error that "
            "names the phase. It is.",
            "Each client waits for six seconds and then gives up with an error that names the "
            "phase.",
        ),
        (
            "# Title\n\nA client waits for ten seconds and then gives up with an error that names "
            "the phase\n\nNext",
            "A client waits for ten seconds and then gives up with an error that names the phase",
        ),
        (
            "* One.\n* A client waits for a second and then gives up with an error that names the "
            "phase.\n* Two.",
            "A client waits for a second and then gives up with an error that names the phase.",
        ),
        (
            "Now a client waits for five seconds\nand then gives up with an error "
            "which names the phase! So",
            "Now a client waits for five seconds\nand then gives up with an error "
            "which names the phase!",
        ),
    ],
    ids=["sentence", "paragraph", "item", "wrapped lines"],
)
def test_other_words_are_a_whole_statement(text, expected):
    """The new quote is read without the text around it."""
    assert stretch(text) == expected


def test_mark_of_an_item_stays_where_the_quote_has_it():
    """What is like the quote is like its mark too."""
    found = stretch(
        "* One.\n* A client waits a second.\n* Two.", "* A client waits two seconds.", 0.7
    )

    assert found == "* A client waits a second."


def test_end_of_no_statement_nearby_is_the_end_of_a_word():
    """Half a word is no evidence; half of a page is none either."""
    words = "many words that go on and on without any end of a sentence to be seen " * 5
    found = stretch(f"{words}{QUOTE[:40].replace('five', 'six')} {words}", QUOTE[:40])

    assert found == "A client waits for six seconds and then"


def test_ends_of_chinese_sentences_count():
    """They are followed by no blank."""
    quote = "客户端默认等待五秒钟然后报告一个超时错误。"
    text = f"这里是别的内容。{quote.replace('五', '十')}后面还有。"

    assert stretch(text, quote) == quote.replace("五", "十")


def test_combining_mark_stays_with_its_letter():
    """A mark on its own is no text."""
    line = "x\u0302" * 100
    found = stretch(f"{line}{QUOTE.replace(' ', '')}{line}", QUOTE.replace(" ", "")[1:-1] + "?")

    assert not found.startswith("\u0302")


def test_document_shorter_than_the_quote_does_not_count_as_all_of_it():
    """A word of the quote is a small share of it."""
    assert stretch("five seconds") is None


def test_document_a_little_shorter_than_the_quote_is_like_it():
    """A page may hold nothing but the statement."""
    assert stretch(QUOTE.replace("five", "six")) == QUOTE.replace("five", "six")


@pytest.mark.parametrize(("quote", "text"), [(" \n", "a b"), ("a b", ""), ("\u00ad", "\u00ad")])
def test_nothing_is_like_nothing(quote, text):
    """Blank texts have no wording to share."""
    assert stretch(text, quote, 1.0) in {None, "\u00ad"}


def test_likeness_counts_insertions_and_deletions():
    """Two letters differ of 24: 1 - 2 / 24."""
    found = most_similar("the red ball", page("the rad ball"), 0.5)

    assert found.likeness == pytest.approx(1 - 2 / 24)


def test_likeness_below_the_least_is_none():
    """The setting says from where on another wording counts."""
    assert stretch("the rad ball", "the red ball", 0.92) is None


def test_nearly_all_is_not_shown_as_all():
    """A reader takes 100 % for the same words."""
    assert [in_percent(share) for share in (0.9999, 1.0, 0.29)] == ["99 %", "100 %", "29 %"]


@settings(max_examples=100, deadline=None)
@given(
    st.text(alphabet="ab .\n*客。é\u0301", min_size=1, max_size=120),
    st.text(alphabet="ab .客。", min_size=1, max_size=30),
)
def test_other_words_stand_where_they_are_said_to(text, quote):
    """Offsets, chunks and text of a place must agree, whatever the text."""
    chunks = chunks_of({"a": text})
    found = most_similar(quote, Page(chunks), 0.3)
    spots = ChunkIndex(chunks).places(found.placement.text, "a") if found else []

    assert found is None or found.placement.start in {spot.start for spot in spots}


@settings(deadline=None)
@given(st.text(alphabet="ab .\n", max_size=60), st.text(alphabet="ab ", min_size=1, max_size=20))
def test_text_that_is_there_is_wholly_alike(text, quote):
    """Verbatim is the most alike of all."""
    shown = f"{text} {quote} {text}"
    found = most_similar(quote, page(shown), 1.0)

    assert (found is not None) == bool(fold(quote))


def test_long_document_is_searched_in_parts():
    """Its time must not grow with the square, and what a border cuts must be found."""
    rows = [
        f"Row {number} is about nothing that is of any use to anybody. " for number in range(9000)
    ]
    changed = QUOTE.replace("five", "six")
    text = "".join([*rows[:8000], changed, " ", *rows[8000:]])

    assert stretch(text, least=0.9) == changed


def test_long_document_without_the_quote_has_nothing_like_it():
    """None of its parts counts."""
    assert stretch("Other matters. " * 20_000) is None


def test_hostile_text_of_one_letter_is_searched_in_bounded_time():
    """Comparing all with all would take minutes."""
    found = stretch("a" * 200_000, "a" * 600 + "b", 0.9)

    assert set(found) == {"a"}


def test_quote_of_a_whole_book_has_no_other_words():
    """Its time would grow with the square; it is searched for by its question then."""
    book = " ".join(f"word{number}" for number in range(1000))

    assert stretch(f"{book} end", f"{book} End") is None
