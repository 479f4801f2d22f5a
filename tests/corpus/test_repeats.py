from ragforge.corpus.repeats import Boilerplate, Repeats

WORDS = " ".join(f"word{n}" for n in range(60))


def repeats(*texts):
    found = Repeats()
    for text in texts:
        found.add(text)
    return found


def test_copy_is_found_whatever_its_blanks():
    """A reflow makes no new passage."""
    found = repeats("one  two\nthree", "other", "one two three", "one two three")

    assert list(found.exact()) == [(2, 0), (3, 0)]


def test_near_copy_is_found_once_and_not_as_a_copy():
    """One word of sixty changes nothing for a retriever."""
    found = repeats(WORDS, WORDS.replace("word30", "changed"), WORDS, "other words entirely here")

    assert list(found.exact()) == [(2, 0)]
    assert list(found.near()) == [(1, 0)]


def test_chunks_without_words_are_no_near_copies():
    """Rules and dots have nothing in common but the lack of words."""
    assert list(repeats("----", "....", "****").near()) == []


def test_many_chunks_are_taken_in_batches():
    """What is behind a batch must be compared with what is in it."""
    texts = [" ".join(f"w{n}x{word}" for word in range(20)) for n in range(2100)]
    found = repeats(*texts, texts[3] + " more")

    assert list(found.near()) == [(2100, 3)]


BANNER = "Was this page helpful? Tell us what to improve."


def boilerplate(*documents):
    found = Boilerplate()
    for number, text in enumerate(documents):
        found.add(f"d{number}", number, text)
    return [(row, share) for row, _, share in found.found(len(documents))]


def test_paragraph_of_many_documents_is_found():
    """It makes all of these documents alike."""
    texts = [f"Text of page {n}.\n\n{BANNER}" for n in range(4)]

    assert boilerplate(*texts, "x" * 30, "y" * 30) == [(row, 4 / 6) for row in range(4)]


def test_paragraph_of_few_documents_is_not():
    """Two pages may say the same thing."""
    assert boilerplate(*[BANNER] * 2, *(f"Page {n} says something else." for n in range(8))) == []


def test_small_corpora_have_no_boilerplate():
    """Two of four documents show no habit."""
    assert boilerplate(*[BANNER] * 4) == []


def test_headings_are_no_boilerplate():
    """Every page of a reference has the heading Parameters."""
    assert boilerplate(*["## Parameters and results"] * 9) == []
