"""Whether two answers say the same: as texts, or as one number, date or quantity.

A value is read only where one reading is possible.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Literal

from ragforge.deferred import dataclass, datetime, decimal, pattern
from ragforge.files.text import normalize
from ragforge.stages.words import entries, languages

Kind = Literal["number", "date", "quantity"]

_ARTICLES = frozenset({"a", "an", "the"})
_QUANTIFIERS = frozenset({"few", "little"})
"""A few is not few."""
_SHORT = 3
"""Letters of a word whose capitals may tell it from another: US and us, MB and Mb, IT and it."""
_AS_WRITTEN = ("<super>", "<sub>", "<fraction>")
"""Compatibility forms that change what is said when they are folded: 10⁶ is not 106."""
_QUOTES = str.maketrans("\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019", '"' * 5 + "''")
_DASHES = str.maketrans({"\u2212": "-", "\u2010": "-", "\u2011": "-", "\u2013": "-"})
_ENDS = pattern(r"(?<![\s.,;:\u3002])[\s.,;:\u3002]+$|(?<=[^\W\d_]{2})[\s.,;:!\u3002]+$")


@dataclass(frozen=True, slots=True)
class Value:
    """A number, date or quantity; two values are equal if all fields are."""

    kind: Kind
    amount: decimal.Decimal | datetime.date
    measured_in: str = ""
    """What the amount counts, after conversion; for a bare number how many decimals it has.

    2.50 and 2.5 may be two versions, 2.50 km and 2.5 km are one length.
    """


_SCALES = {"thousand": 3, "million": 6}
_UNITS = """
length 0.000001 mm: micrometre micrometres micrometer micrometers μm um
length 1 mm: mm millimetre millimetres millimeter millimeters
length 10 mm: cm centimetre centimetres centimeter centimeters
length 1000 mm: m metre metres meter meters
length 1000000 mm: km kilometre kilometres kilometer kilometers kilómetros chilometri
inch 1: inch inches
foot 1: foot feet ft
mile 1: mile miles
mass 0.001 g: mg milligram milligrams
mass 1 g: g gram grams gramme grammes gramm
mass 1000 g: kg kilogram kilograms kilogramm kilo kilos
pound of mass 1: lb lbs
volume 1 ml: ml mL millilitre millilitres milliliter milliliters
volume 1000 ml: l L litre litres liter liters
time 0.001 s: ms millisecond milliseconds
time 1 s: s sec secs second seconds sekunde sekunden seconde secondes segundo segundos
time 60 s: min mins minute minutes minuten minuto minutos minuti
time 3600 s: h hr hrs hour hours stunde stunden heure heures hora horas uur ore
day 1: day days tag tage tagen jour jours día días dia dias giorno giorni dag dagen
day 7: week weeks woche wochen semaine semaines semana semanas settimane weken
month 1: month months monat monate monaten mois mes meses mesi maand maanden
month 12: year years jahr jahre jahren année années ans año años anno anni jaar
percent 1: % percent pct prozent procent
byte 1: byte bytes
byte 1024: KiB
byte 1048576: MiB
byte 1073741824: GiB
kilobyte 1: kB KB kilobyte kilobytes
megabyte 1: MB megabyte megabytes
gigabyte 1: GB gigabyte gigabytes
terabyte 1: TB terabyte terabytes
power 0.001 W: mW milliwatt milliwatts
power 1 W: W watt watts
power 1000 W: kW kilowatt kilowatts
power 1000000 W: MW megawatt megawatts
energy 1 Wh: Wh
energy 1000 Wh: kWh
energy 1000000 Wh: MWh
frequency 1 Hz: Hz hertz
frequency 1000 Hz: kHz kilohertz
frequency 1000000 Hz: MHz megahertz
frequency 1000000000 Hz: GHz gigahertz
volt 1: V volt volts
degree Celsius 1: °C celsius
degree Fahrenheit 1: °F fahrenheit
dollar 1: $ dollar dollars
US dollar 1: USD US$
euro 1: € EUR euro euros
British pound 1: £ GBP
Swiss franc 1: CHF
yen 1: yen JPY
"""
"""What it measures, the factor to its smallest unit, and the names; symbols count as written.

Left out is what has two readings: t, oz, pint, billion, ¥, K. A kB is 1000 or 1024 bytes, and
24 hours may not be a day where days are counted, so those are not converted.
"""

_JOINED = {
    "per cent": "percent",
    "pour cent": "percent",
    "por ciento": "percent",
    "por cento": "percent",
    "per cento": "percent",
    "degrees Celsius": "°C",
    "degrees Fahrenheit": "°F",
    "US dollars": "USD",
}


@dataclass(frozen=True, slots=True)
class _Unit:
    measures: str
    factor: decimal.Decimal


@cache
def _units() -> dict[str, _Unit]:
    """Return the units by their names; read when first needed."""
    table = {}
    for line in _UNITS.strip().splitlines():
        head, _, names = line.partition(": ")
        found = re.fullmatch(r"(?P<what>.+?) (?P<factor>[0-9.]+)(?: \w+)?", head)
        assert found is not None
        for name in names.split():
            table[name] = _Unit(found["what"], decimal.Decimal(found["factor"]))
    return table


_MOST_DIGITS = 20
"""More would not be compared exactly once they are converted."""
_DIGITS = r"(?:[0-9]{1,3}(?:[ '\u2019][0-9]{3})+|[0-9][0-9.,]*[0-9]|[0-9])"
CURRENCIES = ("US$", "USD", "EUR", "GBP", "CHF", "JPY", "$", "€", "£")
"""What may stand before an amount."""
_CURRENCY = "|".join(map(re.escape, CURRENCIES))
_AMOUNT = pattern(
    rf"(?P<before>{_CURRENCY})? ?(?P<sign>-)?(?P<digits>{_DIGITS})"
    r"(?P<after>.*)",
    re.DOTALL,
)
_WRITTEN_DATES = (
    pattern(
        r"(?P<d>[0-9]{1,2})(?:st|nd|rd|th|er|º|\.)? (?:of |de )?(?P<name>[^\W\d_]+)\.?,? "
        r"(?:de )?(?P<y>[0-9]{4})(?: года?| r\.| год)?"
    ),
    pattern(
        r"(?<![^\W\d_])(?P<name>[^\W\d_]+)\.? (?P<d>[0-9]{1,2})(?:st|nd|rd|th)?,? (?P<y>[0-9]{4})"
    ),
    pattern(r"(?P<y>[0-9]{4}) ?[年년] ?(?P<m>[0-9]{1,2}) ?[月월] ?(?P<d>[0-9]{1,2}) ?[日일]"),
    pattern(r"(?P<y>[0-9]{4})(?P<mark>[-/.])(?P<m>[0-9]{1,2})(?P=mark)(?P<d>[0-9]{1,2})"),
)
_DAY_OR_MONTH_FIRST = pattern(
    r"(?P<one>[0-9]{1,2})(?P<mark>[-/.])(?P<two>[0-9]{1,2})(?P=mark)(?P<y>[0-9]{4})"
)
_COMMA_GROUPS_IN = frozenset({"en", "zh", "ja", "ko", "th", "he"})
"""Languages in which 1,000 is a thousand and cannot be one with three decimals."""


def read_value(text: str, language: str = "en") -> Value | None:
    """Return the one number, date or quantity that a text is; None where it is none for certain.

    03/04/2025 has two readings, as 1.000 has, and 007 is rather a name.

    Args:
        text: Folded: compatibility forms, blanks, quotes; letters as written.
        language: In which it is written, for the comma in 1,000.
    """
    day = _read_date(text)
    if day is not None:
        return Value("date", day)
    small = small_numbers()
    if text.casefold() in small:
        return Value("number", decimal.Decimal(small.index(text.casefold())), "0 decimals")
    amount = _AMOUNT.fullmatch(text)
    if amount is None or len(amount["digits"]) > _MOST_DIGITS:
        return None
    number = _read_number(amount["digits"], language)
    if number is None:
        return None
    signed = -number if amount["sign"] == "-" else number
    return _measured(signed, amount["before"] or "", amount["after"])


def is_unit(name: str) -> bool:
    """Whether a word or sign names a unit or currency, as in "7 kg"."""
    return _unit(name) is not None


def small_numbers() -> tuple[str, ...]:
    """Return the English words for numbers from zero on."""
    return entries("en", "values.small_numbers")


@cache
def _month_numbers() -> dict[str, int]:
    """Return the number of a month by its names in all languages."""
    return {
        name: number
        for language in languages()
        for number, names in enumerate(entries(language, "values.months"), start=1)
        for name in names.split()
    }


def _measured(number: decimal.Decimal, before: str, after: str) -> Value | None:
    scale, _, rest = after.strip().partition(" ")
    if scale.casefold() in _SCALES:
        number, after = number.scaleb(_SCALES[scale.casefold()]), rest
    name = _JOINED.get(after.strip(), after.strip())
    if not before and not name:
        return Value("number", number, f"{_decimals(number)} decimals")
    if before and name:
        return None
    unit = _unit(before or name)
    return None if unit is None else Value("quantity", number * unit.factor, unit.measures)


def _unit(name: str) -> _Unit | None:
    """Return a unit by its name, of which only words may be written in capitals."""
    units = _units()
    return units.get(name) or (units.get(name.casefold()) if len(name) > 2 else None)


def _decimals(number: decimal.Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)


def _read_number(digits: str, language: str) -> decimal.Decimal | None:
    plain = re.sub(r"[ '\u2019]", "", digits)
    readings: tuple[tuple[str, Callable[[str], str]], ...] = (
        (r"0|[1-9][0-9]*", str),
        (r"(?:0|[1-9][0-9]*)\.(?:[0-9]{1,2}|[0-9]{4,})|0\.[0-9]+", str),
        (r"[1-9][0-9]{0,2}(?:,[0-9]{3}){2,}(?:\.[0-9]+)?", lambda text: text.replace(",", "")),
        (r"[1-9][0-9]{0,2}(?:,[0-9]{3})+\.[0-9]+", lambda text: text.replace(",", "")),
        (
            r"[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+|[1-9][0-9]{0,2}(?:\.[0-9]{3}){2,}",
            lambda text: text.replace(".", "").replace(",", "."),
        ),
    )
    for form, spelled in readings:
        if re.fullmatch(form, plain):
            return decimal.Decimal(spelled(plain))
    with_commas = language.partition("-")[0] in _COMMA_GROUPS_IN
    if with_commas and re.fullmatch(r"[1-9][0-9]{0,2},[0-9]{3}", plain):
        return decimal.Decimal(plain.replace(",", ""))
    if not with_commas and re.fullmatch(r"(?:0|[1-9][0-9]*),(?:[0-9]{1,2}|[0-9]{4,})", plain):
        return decimal.Decimal(plain.replace(",", "."))
    return None


def _read_date(text: str) -> datetime.date | None:
    for form in _WRITTEN_DATES:
        match = form.fullmatch(text)
        if match is not None:
            parts = match.groupdict()
            month = _month_numbers().get(parts.get("name", "").casefold()) or int(
                parts.get("m") or 0
            )
            return _day(int(parts["y"]), month, int(parts["d"]))
    match = _DAY_OR_MONTH_FIRST.fullmatch(text)
    if match is None:
        return None
    one, two, year = int(match["one"]), int(match["two"]), int(match["y"])
    readings = {_day(year, two, one), _day(year, one, two)} - {None}
    return readings.pop() if len(readings) == 1 else None


def _day(year: int, month: int, day: int) -> datetime.date | None:
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None


def same_text(text: str, other: str) -> bool:
    """Whether two texts are the same but for how they are written.

    Compatibility forms, blanks, articles, the capitals of longer words, quotes around and
    punctuation behind it make no difference. Signs do (-5, C++, 1.5), and so does punctuation
    within, which may change what is said: "No, access is free". Texts without a word or number
    are never the same.
    """
    words = _words(text)
    telling = [word for word in words if word not in _ARTICLES and any(map(str.isalnum, word))]
    return bool(telling) and words == _words(other)


def equal_values(expected: str, answer: str, language: str) -> Kind | None:
    """Return what two texts both are, if they are one number, date or quantity, and equal."""
    value = read_value(_folded(expected), language)
    if value is None or read_value(_folded(answer), language) != value:
        return None
    return value.kind


def say_the_same(expected: str, answer: str, language: str) -> bool:
    """Whether two answers are the same for certain: the same text, or an equal value."""
    return same_text(expected, answer) or equal_values(expected, answer, language) is not None


def _folded(text: str) -> str:
    """Return a text with its ends, blanks and compatibility forms folded, and case as it is."""
    plain = text if text.isascii() else "".join(map(_plain, normalize("NFC", text)))
    spaced = " ".join(plain.translate(_QUOTES).translate(_DASHES).split())
    bare = _ENDS.sub("", spaced)
    if len(bare) > 2 and bare[0] == bare[-1] and bare[0] in "\"'" and bare.count(bare[0]) == 2:
        bare = _ENDS.sub("", bare[1:-1].strip())
    return bare


def _plain(character: str) -> str:
    is_as_written = unicodedata.decomposition(character).startswith(_AS_WRITTEN)
    return character if is_as_written else normalize("NFKC", character)


def _words(text: str) -> list[str]:
    words = [_without_case(word, at) for at, word in enumerate(_folded(text).split())]
    return [word for at, word in enumerate(words) if not _is_mere_article(words, at)]


def _is_mere_article(words: list[str], at: int) -> bool:
    """Whether leaving a word out changes nothing; the A of "vitamin A deficiency" does."""
    follows = words[at + 1] if at + 1 < len(words) else None
    if follows is None or follows in _QUANTIFIERS:
        return False
    return words[at] == "the" or (at == 0 and words[at] in _ARTICLES)


def _without_case(word: str, at: int) -> str:
    """Return a word in small letters where its capitals cannot matter."""
    letters = sum(character.isalpha() for character in word)
    folded = word.casefold()
    if letters > _SHORT and not any(map(str.isdigit, word)):
        return folded
    begins_sentence = at == 0 and letters > 1 and word.istitle()
    return folded if begins_sentence or folded in ("yes", "no", "the") else word
