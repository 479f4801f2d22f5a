from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.config import GenerateSettings
from ragforge.errors import ConfigError
from ragforge.records import Difficulty, QueryType
from ragforge.stages.generate.quotas import largest_remainder, make_cells, targets

MARGINS = ("type", "difficulty", "persona", "language")


def shares_of(names):
    """Draw shares that add up to 100 of some of the names."""

    def scaled(parts):
        rest = 100 - sum(int(part * 99) for _, part in parts[1:])
        return (f"{parts[0][0]}={rest}", *(f"{name}={int(part * 99)}" for name, part in parts[1:]))

    def split(chosen):
        one = st.floats(0, 1 / len(chosen))
        return st.tuples(*(st.tuples(st.just(name), one) for name in chosen)).map(scaled)

    return st.lists(st.sampled_from(names), min_size=1, unique=True).flatmap(split)


SETTINGS = st.builds(
    GenerateSettings,
    n=st.integers(1, 500),
    types=shares_of(QueryType.__args__),
    difficulties=shares_of(Difficulty.__args__),
    personas=shares_of(("novice", "expert", "auditor")),
    language=shares_of(("en", "de", "pt-BR")),
)


def counts(cells, *fields):
    """Count the cells by fields."""
    return Counter(tuple(getattr(cell, field) for field in fields) for cell in cells)


@given(SETTINGS, st.integers(0, 3))
def test_every_margin_is_less_than_one_from_its_share(settings, seed):
    """A share that is asked for and not met is a set that lies about its mix."""
    wanted = targets(settings)
    shares = (wanted.types, wanted.difficulties, wanted.personas, wanted.languages)

    cells = make_cells(settings, seed)

    assert len(cells) == settings.n
    for field, margin in zip(MARGINS, shares, strict=True):
        got = counts(cells, field)
        assert set(got) <= {(name,) for name in margin}
        assert all(abs(got[name,] - share * settings.n) < 1 for name, share in margin.items())


@pytest.mark.parametrize("n", [1, 7, 150])
def test_the_same_seed_gives_the_same_cells(n):
    """A run that is taken up again must plan as it did."""
    assert make_cells(GenerateSettings(n=n), 3) == make_cells(GenerateSettings(n=n), 3)


@pytest.mark.parametrize("n", [20, 50, 200])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_query_is_asked_for_that_makes_no_sense(n, seed):
    """A keyword search cannot need inference, and two hops are never just stated."""
    got = counts(make_cells(GenerateSettings(n=n), seed), "type", "difficulty")

    assert got["keyword", "hard"] + got["definition", "hard"] == 0
    assert got["multi_hop", "easy"] + got["multi_hop_across", "easy"] == 0


def test_what_makes_no_sense_stays_where_nothing_can_be_exchanged():
    """The shares are the user's word; the writer is told what was asked for."""
    settings = GenerateSettings(n=4, types=("keyword=100",), difficulties=("hard=100",))

    assert counts(make_cells(settings, 0), "type", "difficulty") == {("keyword", "hard"): 4}


@pytest.mark.parametrize("seed", range(5))
def test_difficulties_are_spread_over_the_types(seed):
    """Were all hard queries of one type, no one could tell which of the two makes them hard."""
    settings = GenerateSettings(
        n=100, types=("fact=40", "why=30", "list=30"), difficulties=("easy=50", "hard=50")
    )

    got = counts(make_cells(settings, seed), "type", "difficulty")

    assert abs(got["fact", "hard"] - 20) <= 1
    assert abs(got["why", "hard"] - 15) <= 1
    assert abs(got["list", "hard"] - 15) <= 1


@pytest.mark.parametrize("seed", range(5))
def test_personas_and_languages_are_spread_over_the_types(seed):
    """A language that has only one type of query cannot be compared with the others."""
    settings = GenerateSettings(
        n=160,
        types=("fact=50", "why=50"),
        difficulties=("easy=50", "hard=50"),
        personas=("novice=50", "expert=50"),
        language=("en=50", "de=50"),
    )

    got = counts(make_cells(settings, seed), *MARGINS)

    assert len(got) == 16
    assert all(9 <= count <= 11 for count in got.values())


@pytest.mark.parametrize("seed", range(3))
def test_the_first_half_has_about_the_shares_of_the_whole(seed):
    """A run that its budget stops half-way must leave a set of the wanted mix."""
    half = counts(make_cells(GenerateSettings(n=200), seed)[:100], "type")

    wanted = targets(GenerateSettings()).types
    assert all(abs(half[name,] - share * 100) <= 1 for name, share in wanted.items())


def test_cells_are_numbered_in_their_order():
    """The number is half of a slot's id."""
    cells = make_cells(GenerateSettings(n=12), 0)

    assert [cell.number for cell in cells] == list(range(12))


def test_another_seed_mixes_otherwise():
    """Whoever draws a second set wants no copy of the first one's plan."""
    assert make_cells(GenerateSettings(n=50), 0) != make_cells(GenerateSettings(n=50), 1)


def test_a_share_of_nothing_gives_nothing():
    """`ambiguous=0` switches a type off, however many queries there are."""
    settings = GenerateSettings(n=99, types=("fact=100", "ambiguous=0"))

    assert counts(make_cells(settings, 0), "type") == {("fact",): 99}


def test_thirds_count_as_thirds():
    """Percentages are written with few digits; what they lack must not go to one name."""
    settings = GenerateSettings(personas=("a=33.3333333", "b=33.3333333", "c=33.3333334"))

    assert targets(settings).personas == dict.fromkeys("abc", Fraction(1, 3))


def test_the_largest_remainder_is_rounded_up():
    """Of 10 in shares of 46, 36 and 18 %, 4.6 has most to gain, then 1.8."""
    shares = {"a": Fraction(46, 100), "b": Fraction(36, 100), "c": Fraction(18, 100)}

    assert largest_remainder(shares, 10) == {"a": 5, "b": 3, "c": 2}


@pytest.mark.parametrize(
    ("setting", "value", "match"),
    [
        ("types", "facts=100", "generate.types: there is no 'facts'; did you mean fact"),
        ("types", "multihop=100", "did you mean multi_hop"),
        ("difficulties", "heavy=100", "generate.difficulties: there is no 'heavy'"),
        ("language", "english=100", "generate.language: 'english' is no ISO 639-1 code"),
        ("language", "EN=100", "'EN' is no ISO 639-1 code"),
        ("language", "pt_br=100", "'pt_br' is no ISO 639-1 code"),
    ],
)
def test_unknown_names_are_refused(setting, value, match):
    """A typing error must not cost a run that makes the wrong set."""
    with pytest.raises(ConfigError, match=match):
        make_cells(GenerateSettings(**{setting: (value,)}), 0)


@pytest.mark.parametrize("code", ["en", "zh", "pt-BR", "zh-Hant"])
def test_codes_with_a_region_or_script_are_languages(code):
    """Brazilian and European Portuguese are asked in differently."""
    [cell] = make_cells(GenerateSettings(n=1, language=(f"{code}=100",)), 0)

    assert cell.language == code
