from ragforge.corpus.pdf import without_running_lines


def page(word, *, top="Manual", bottom="1"):
    return [top, *(f"{word} line {word * (1 + n)}" for n in range(8)), bottom]


def test_header_and_number_of_every_page_go():
    """They are no part of the text."""
    pages = [page(word, bottom=f"- {number} -") for number, word in enumerate("abcd")]

    assert [kept[0] for kept in without_running_lines(pages)] == [
        "a line a", "b line b", "c line c", "d line d",
    ]  # fmt: skip
    assert [len(kept) for kept in without_running_lines(pages)] == [8, 8, 8, 8]


def test_left_and_right_pages_may_differ():
    """Books alternate title and chapter."""
    pages = [page(word, top="Title" if at % 2 else "Chapter") for at, word in enumerate("abcdefgh")]

    assert all(kept[0].endswith(word) for kept, word in zip(
        without_running_lines(pages), "abcdefgh", strict=True
    ))  # fmt: skip


def test_repeated_lines_within_pages_stay():
    """A phrase that comes on each page is text."""
    pages = [[*page(word)[:5], "See the manual.", *page(word)[5:]] for word in "abcd"]

    assert all("See the manual." in kept for kept in without_running_lines(pages))


def test_two_pages_are_left_alone():
    """Two of a kind are no pattern."""
    pages = [page("a"), page("b")]

    assert without_running_lines(pages) == pages


def test_header_of_a_chapter_goes_with_its_page_number():
    """It stands on the pages of one chapter only, a few of many."""
    tops = ["Chapter 1: Start 3", "Chapter 1: Start 4", "Chapter 1: Start 5"]
    pages = [
        page(word, top=top, bottom="end " + word) for word, top in zip("abc", tops, strict=True)
    ]
    others = [page(word, top=word * 9, bottom="end " + word) for word in "defghijk"]

    kept = without_running_lines(pages + others)

    assert [lines[0] for lines in kept[:4]] == ["a line a", "b line b", "c line c", "d" * 9]
