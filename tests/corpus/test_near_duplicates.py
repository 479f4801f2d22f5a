import numpy as np
import pytest

from ragforge.corpus import near_duplicates
from ragforge.corpus.near_duplicates import (
    Boilerplate,
    Repeats,
    Sketches,
    representatives,
    triples,
)

TEXT = [f"word{number}" for number in range(200)]
WORDS = " ".join(f"word{n}" for n in range(60))
BANNER = "Was this page helpful? Tell us what to improve."


def numbered(words):
    """Give each word a number that has nothing of its order."""
    return np.array([(hash_of(word)) for word in words], np.uint64)


def hash_of(word):
    return int.from_bytes(word.encode().ljust(6, b".")[-6:], "little") * 2_654_435_761 % 2**48


@pytest.fixture
def stands(tmp_path_factory):
    """Return the representative of each text, a list of words, and which rows were read again."""

    def found(texts, at_once=1000, parts=1):
        place, read = tmp_path_factory.mktemp("sketches"), []
        size = -(-len(texts) // parts) or 1
        for number in range(parts):
            own = texts[number * size : (number + 1) * size]
            with Sketches(place / f"part{number}") as sketches:
                for first in range(0, len(own), at_once):
                    part = [numbered(words) for words in own[first : first + at_once]]
                    lengths = np.array([len(words) for words in part], np.int64)
                    sketches.add(np.concatenate(part), lengths)

        def words(row):
            read.append(row)
            return numbered(texts[row])

        folders = [place / f"part{number}" for number in range(parts)]
        rows = representatives(folders, words, place / "pairs").tolist()
        assert not (place / "pairs").exists()
        return rows, read

    return found


def changed(words, *places):
    return [f"new{place}" if place in places else word for place, word in enumerate(words)]


def test_the_first_of_a_group_stands_for_it(stands):
    """Chance must not decide which chunk is asked about."""
    other = [f"other{number}" for number in range(200)]

    found, _ = stands([TEXT, other, changed(TEXT, 50), TEXT, changed(other, 0)])

    assert found == [0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("places", "expected"),
    [((100,), 0), ((20, 100), 0), ((20, 100, 180), 0), ((20, 60, 100, 140), 1)],
)
def test_nine_of_ten_triples_are_the_least(stands, places, expected):
    """Each changed word takes three triples of 198: three words leave 0.913, four leave 0.886."""
    assert stands([TEXT, changed(TEXT, *places)])[0] == [0, expected]


def test_texts_of_the_same_words_in_another_order_are_no_duplicates(stands):
    """Triples hold the order."""
    assert stands([TEXT, TEXT[::-1]])[0] == [0, 1]


@pytest.mark.parametrize("words", [[], ["a"], ["a", "b"], ["a", "b", "c"]])
def test_short_texts_are_duplicates_of_equal_ones_alone(stands, words):
    """Two words are one run: shared or not."""
    assert stands([words, [*words, "d"], words])[0] == [0, 1, 0]


def test_each_member_is_like_the_one_that_stands_for_it(stands):
    """Versions that drift must not end in one group whose ends have nothing in common."""
    versions = [changed(TEXT, *range(0, 12 * step, 4)) for step in range(8)]

    found, _ = stands(versions)

    assert found == [0, 0, 2, 2, 4, 4, 6, 6]


def test_ten_thousand_equal_texts_are_not_compared(stands):
    """A corpus of one repeated document must not take the square of its size."""
    found, read = stands([["a", "b", "c"] * 30] * 10_000)

    assert (set(found), read) == ({0}, [])


def test_a_template_filled_in_often_is_compared_a_bounded_number_of_times(stands):
    """Pages that differ a little more than a tenth share buckets, and are no duplicates."""
    texts = [
        changed(TEXT, *(place + number % 7 for place in range(3, 190, 24))) for number in range(7)
    ]
    texts = [[*words[:-3], *[f"x{number}"] * 3] for number, words in enumerate(texts * 100)]

    found, read = stands(texts)

    assert len(read) < 20 * len(texts)
    assert sorted(set(found))[:7] == [0, 1, 2, 3, 4, 5, 6]


def test_parts_in_which_texts_come_change_nothing(stands):
    """How many chunks are taken at once is a matter of memory."""
    texts = [TEXT, [], changed(TEXT, 5), ["a"], [], TEXT]

    assert stands(texts, at_once=1) == stands(texts)


@pytest.mark.parametrize("parts", [1, 4])
def test_what_is_in_memory_at_once_changes_nothing(stands, monkeypatch, parts):
    """A large corpus is sorted in ranges and read in blocks, and shards are put together."""
    draw = np.random.default_rng(4)
    texts = [TEXT, ["a"], []]
    for _ in range(120):
        origin = texts[int(draw.integers(len(texts)))]
        places = draw.integers(200, size=int(draw.integers(9))).tolist()
        texts.append(changed(origin, *places) if draw.random() < 0.9 else origin[::-1])
    whole = stands(texts)
    sizes = {"_SORTED_AT_ONCE": 10, "_READ_AT_ONCE": 7, "_MEMBERS_AT_ONCE": 5, "_PART": 3}
    for name, size in sizes.items():
        monkeypatch.setattr(near_duplicates, name, size)

    assert stands(texts, parts=parts) == whole
    assert 10 < len(set(whole[0])) < 100


def test_no_text_at_all_gives_no_group(stands):
    """An empty corpus is told of elsewhere."""
    assert stands([])[0] == []


def test_triples_do_not_reach_into_the_next_text():
    """Else the order of the corpus would decide what is alike."""
    words = numbered(["a", "b", "c", "d", "e", "f"])

    runs, counts = triples(words, np.array([4, 0, 2], np.int64))

    alone = [triples(part, np.array([len(part)]))[0].tolist() for part in (words[:4], words[4:])]
    assert counts.tolist() == [2, 0, 1]
    assert runs.tolist() == alone[0] + alone[1]


def test_a_word_numbered_0_is_a_word():
    """Callers may count the words as they come."""
    one, two = (
        triples(np.array(words, np.uint64), np.array([len(words)])) for words in ([5], [5, 0])
    )

    assert one[0].tolist() != two[0].tolist()


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
