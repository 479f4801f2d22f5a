import random
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.files.scan import Irregular
from ragforge.files.scan.decimals import BEFORE, parse_decimals
from ragforge.files.scan.tokens import LONGEST_TOKEN

N_TOKENS = 3000
EXTREME = """
+1.5 .5 5. -.5 -5. 0 -0 -0.0 00012.50 1e400 -1e400 inf -Infinity 5e-324 2.2250738585072014e-308
9007199254740991 9007199254740992 9007199254740993 9007199254740993.0 9007199254740992.9999999
4503599627370496.5 4503599627370497.5 0.30000000000000004441 1.00000000000000011102230246251565
123456789012345678 1234567890123456789 99999999999999999999.5 0.00000000000000000000001
999999999999999999 9999999999999999.99 0.1234567890123456789012 12345678.12345678 1E5 1e-5 7
""".split()
REFUSED = """
nan -nan 1_0 0x1 . - + -. --5 +-5 1.2.3 1..2 1.5. 5- 1e 1e+ 1,5 1/5 1:5 12345678.12345678.1
\u00e91.5 \u0661 1.5\u00e9 ... 1234567\x011
""".split()


def parsed(tokens):
    texts = [token.encode() for token in tokens]
    array = np.frombuffer(b"9" * BEFORE + b".".join(texts) + b"9" * (LONGEST_TOKEN + 8), np.uint8)
    lengths = np.array([len(text) for text in texts])
    ends = BEFORE + (lengths + 1).cumsum() - 1
    return parse_decimals(array, ends - lengths, ends)


def bits(values):
    return np.array(values, float).view(np.int64).tolist()


def float32(number):
    return struct.unpack("f", struct.pack("f", number))[0]


SPELLINGS = {
    "six decimals": lambda r: f"{r.gauss(10, 5):.6f}",
    "shortest": lambda r: repr(r.gauss(0, 5)),
    "shortest below one": lambda r: repr(r.random()),
    "shortest and small": lambda r: repr(r.random() * 10 ** -r.randrange(12)),
    "general": lambda r: f"{r.gauss(0, 1) * 10 ** r.randrange(-8, 8):g}",
    "seventeen digits": lambda r: f"{r.gauss(0, 9):.17g}",
    "float32": lambda r: repr(float32(r.random() * 20)),
    "whole": lambda r: str(r.randrange(-(10 ** r.randrange(1, 22)), 10**20)),
    "exponents": lambda r: f"{r.gauss(0, 1) * 10.0 ** r.randrange(-300, 300):.17e}",
    "subnormal": lambda r: repr(r.random() * 5e-320),
    "halfway": lambda r: f"{2**52 + r.randrange(2**52)}.5",
    "halfway and whole": lambda r: str(2**53 + 1 + 2 * r.randrange(2**52)),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_numbers_are_those_that_python_reads(spelling):
    """A score that is off by one bit makes ties, or breaks them."""
    generator = random.Random(spelling)
    tokens = [SPELLINGS[spelling](generator) for _ in range(N_TOKENS)]

    assert bits(parsed(tokens)) == bits([float(token) for token in tokens])


def test_numbers_of_all_spellings_stand_side_by_side():
    """One odd number must not change how the others are read."""
    generator = random.Random(0)
    spellings = list(SPELLINGS.values())
    tokens = [generator.choice(spellings)(generator) for _ in range(N_TOKENS)] + EXTREME

    assert bits(parsed(tokens)) == bits([float(token) for token in tokens])


@pytest.mark.parametrize("token", EXTREME)
def test_extreme_number_is_read_alone(token):
    """The way that is taken depends on the first number and on the longest."""
    assert bits(parsed([token])) == bits([float(token)])


@given(st.lists(st.floats(allow_nan=False).map(repr), min_size=1))
def test_every_float_comes_back(tokens):
    """Runs are written with repr, which says every bit."""
    assert bits(parsed(tokens)) == bits([float(token) for token in tokens])


@given(st.lists(st.from_regex(r"-?[0-9]{1,12}\.?[0-9]{1,14}", fullmatch=True), min_size=1))
def test_every_run_of_digits_is_read_as_python_reads_it(tokens):
    """More digits than a float64 holds are rounded once, to even."""
    assert bits(parsed(tokens)) == bits([float(token) for token in tokens])


@pytest.mark.parametrize("token", REFUSED)
def test_what_is_no_number_is_irregular(token):
    """Only the line reader can say where it stands."""
    with pytest.raises(Irregular, match=r"^$"):
        parsed([token])


@pytest.mark.parametrize("token", REFUSED)
def test_what_is_no_number_is_irregular_among_numbers(token):
    """The numbers around it must not hide it."""
    with pytest.raises(Irregular, match=r"^$"):
        parsed(["1.5", token, "2.5"])
