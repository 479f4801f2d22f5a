"""The grammar of measure names: `nDCG@10`, `P(rel=2)@5`, `EvidenceR(tokens=2000)`, and aliases.

Printed names follow ir_measures; aliases (`MRR`, `hit_rate@5`, `ndcg_cut_10`) are only read.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypedDict

from ragforge.errors import UsageError
from ragforge.measures.hit_table import LARGEST_GRADE

Gain = Literal["linear", "exp"]

_DEFAULT_P: Final = 0.8
_DEFAULT_MAX_GRADE: Final = 3


class Measure(NamedTuple):
    """One measure with its settings; `str()` gives the only name it is printed under.

    A setting that the measure does not know keeps its default and has no effect.
    """

    name: str
    cutoff: int | None = None
    """Ranks counted from the top; None counts the whole ranking."""
    rel: int | None = None
    """Lowest grade that counts as relevant; None leaves it to `evaluate`."""
    gain: Gain = "linear"
    """What a grade g > 0 is worth: g, or 2^g - 1."""
    p: float = _DEFAULT_P
    """Persistence of RBP: the chance that the reader goes on to the next rank."""
    max_grade: int = _DEFAULT_MAX_GRADE
    """Top of ERR's scale: a grade g satisfies the reader with chance (2^g - 1) / 2^max_grade."""
    tokens: int | None = None
    """Tokens that the texts counted may take of a prompt; None for any number."""

    @property
    def is_of_evidence(self) -> bool:
        """Whether it is computed from places of evidence in documents, not from judgments."""
        return self.name in OF_EVIDENCE

    def __str__(self) -> str:
        written = {
            "rel": "" if self.rel is None else f"rel={self.rel}",
            "gain": "gain='exp'" if self.gain == "exp" else "",
            "p": f"p={self.p!r}",
            "max": f"max={self.max_grade}",
            "tokens": "" if self.tokens is None else f"tokens={self.tokens}",
        }
        settings = [written[key] for key in SYNTAX[self.name].settings if written[key]]
        listed = f"({','.join(settings)})" if settings else ""
        return f"{self.name}{listed}{'' if self.cutoff is None else f'@{self.cutoff}'}"


class _Settings(TypedDict, total=False):
    rel: int
    gain: Gain
    p: float
    max_grade: int
    tokens: int


class Syntax(NamedTuple):
    """What may follow the name of a measure."""

    cutoff: Literal["required", "optional", "none"]
    settings: tuple[str, ...] = ()


_RELEVANT = ("rel",)
_BUDGET = ("tokens",)
SYNTAX: Final[dict[str, Syntax]] = {
    "nDCG": Syntax("optional", ("gain",)),
    "DCG": Syntax("optional", ("gain",)),
    "P": Syntax("required", _RELEVANT),
    "R": Syntax("optional", _RELEVANT),
    "F1": Syntax("required", _RELEVANT),
    "Success": Syntax("optional", _RELEVANT),
    "RR": Syntax("optional", _RELEVANT),
    "AP": Syntax("optional", _RELEVANT),
    "infAP": Syntax("none", _RELEVANT),
    "Rprec": Syntax("none", _RELEVANT),
    "bpref": Syntax("none", _RELEVANT),
    "RBP": Syntax("optional", ("p", "rel")),
    "ERR": Syntax("optional", ("max",)),
    "Judged": Syntax("required"),
    "NumRet": Syntax("none"),
    "NumRel": Syntax("none", _RELEVANT),
    "NumRelRet": Syntax("none", _RELEVANT),
    "SetP": Syntax("none", _RELEVANT),
    "SetR": Syntax("none", _RELEVANT),
    "SetF": Syntax("none", _RELEVANT),
    "EvidenceR": Syntax("optional", _BUDGET),
    "TokenR": Syntax("optional", _BUDGET),
    "TokenP": Syntax("optional", _BUDGET),
    "TokenIoU": Syntax("optional", _BUDGET),
}
"""Every measure, in the order in which messages list them."""
OF_EVIDENCE: Final = frozenset({"EvidenceR", "TokenR", "TokenP", "TokenIoU"})
"""Measures of retrieved text, which no cutting moves; see `evidence_coverage`."""

_ALIASES: Final = {
    "precision": "P",
    "recall": "R",
    "f1score": "F1",
    "hit": "Success",
    "hits": "Success",
    "hitrate": "Success",
    "hr": "Success",
    "mrr": "RR",
    "reciprank": "RR",
    "reciprocalrank": "RR",
    "meanreciprocalrank": "RR",
    "map": "AP",
    "averageprecision": "AP",
    "inferredap": "infAP",
    "meanaverageprecision": "AP",
    "rprecision": "Rprec",
    "setprecision": "SetP",
    "setrecall": "SetR",
    "evidencerecall": "EvidenceR",
    "tokenrecall": "TokenR",
    "tokenprecision": "TokenP",
    "iou": "TokenIoU",
}
_MOST_DIGITS: Final = 9
_AT: Final = "at"
_UNSAID_CUTOFF: Final = "10"
"""What `k` stands for in a name that says no number, as in `meanPrecisionAtK`: the depth that
measures have by default."""
_NAMES: Final = {name.lower(): name for name in SYNTAX} | _ALIASES


@lru_cache(maxsize=1024)
def parse_measure(text: str) -> Measure:
    """Read a measure written as ir_measures, trec_eval or everyday use spells it.

    Raises:
        UsageError: The name is unknown (the nearest are named), a setting does not belong to the
            measure, or a cutoff or setting has a value that cannot be taken.
    """
    head, at, tail = text.strip().partition("@")
    cutoff = tail.strip() if at else None
    if cutoff in ("k", "K"):
        cutoff = _UNSAID_CUTOFF
    spelled, bracket, settings = head.strip().partition("(")
    if bracket and not settings.endswith(")"):
        raise UsageError(f"measure {text!r}: expected NAME, NAME@k or NAME(setting=value)@k")
    if cutoff is None:
        spelled, cutoff = _split_cutoff(spelled.strip())
    name = _name(spelled, text)
    return Measure(name, _cutoff(name, cutoff, text), **_settings(name, settings[:-1], text))


def parse_measures(measures: Iterable[str | Measure] | str | Measure) -> dict[str, Measure]:
    """Read several measures, or one, and return them by the names they are printed under.

    Raises:
        UsageError: There is none, or one cannot be read.
    """
    texts = [measures] if isinstance(measures, str | Measure) else measures
    parsed = [parse_measure(str(text)) for text in texts]
    if not parsed:
        raise UsageError("measures: expected at least one, got none")
    return {str(measure): measure for measure in parsed}


def canonical(names: Iterable[str]) -> list[str]:
    """Return measures by the names they are printed under, each once.

    Raises:
        UsageError: One cannot be read.
    """
    return list(dict.fromkeys(str(parse_measure(name)) for name in names))


def of_evidence(names: Iterable[str]) -> list[str]:
    """Return the measures, canonical names, that are computed from places of evidence."""
    return [name for name in names if parse_measure(name).is_of_evidence]


def is_of_evidence(name: str) -> bool:
    """Whether a name that may be of no measure of retrieval is of one computed from evidence."""
    return name.partition("@")[0].partition("(")[0] in OF_EVIDENCE


def by_judgments(names: Iterable[str]) -> list[str]:
    """Return the measures, canonical names, that are computed from judgments: all others."""
    return [name for name in names if not parse_measure(name).is_of_evidence]


def require_judgments_only(names: Iterable[str]) -> None:
    """Refuse measures of evidence where there are judgments and runs alone.

    Raises:
        UsageError: There is one.
    """
    for name in of_evidence(names):
        raise UsageError(
            f"measure {name!r}: needs a dataset: it is computed from evidence, not from judgments"
        )


def _split_cutoff(spelled: str) -> tuple[str, str | None]:
    """Take spellings without an @ apart: `P_10`, `ndcg_cut_10`, `precision_at_5`, `precisionAtK`.

    The first two are those of trec_eval.
    """
    name = spelled.rstrip("0123456789")
    digits = spelled[len(name) :]
    if name == spelled and spelled[-1:] in ("k", "K"):
        name, digits = spelled[:-1], _UNSAID_CUTOFF
    words = name.rstrip("_- ").lower()
    if digits and words.endswith(_AT) and _folded(words.removesuffix(_AT)) in _NAMES:
        return words.removesuffix(_AT), digits
    if name == spelled or name[-1:] not in ("_", "."):
        return spelled, None
    return name[:-1].removesuffix("_cut"), digits


def _folded(spelled: str) -> str:
    """Return a name as it is compared; `mean` in front says nothing: all are averaged."""
    folded = "".join(spelled.replace("_", " ").replace("-", " ").split()).lower()
    short = folded.removeprefix("mean")
    return short if folded not in _NAMES and short in _NAMES else folded


def _name(spelled: str, text: str) -> str:
    folded = _folded(spelled)
    if folded in _NAMES:
        return _NAMES[folded]
    from difflib import get_close_matches

    near = get_close_matches(folded, _NAMES, n=3, cutoff=0.5)
    nearest = dict.fromkeys(_NAMES[key] for key in near)
    hint = f"nearest: {', '.join(nearest)}" if nearest else f"there are: {', '.join(SYNTAX)}"
    raise UsageError(f"measure {text!r}: no measure {spelled!r}; {hint}")


def _cutoff(name: str, cutoff: str | None, text: str) -> int | None:
    allowed = SYNTAX[name].cutoff
    if cutoff is None:
        if allowed == "required":
            raise UsageError(f"measure {text!r}: {name} needs a cutoff, as in {name}@10")
        return None
    if allowed == "none":
        raise UsageError(f"measure {text!r}: {name} takes no cutoff, got {cutoff!r}")
    return _whole_number(cutoff, f"measure {text!r}: cutoff")


def _settings(name: str, settings: str, text: str) -> _Settings:
    allowed = SYNTAX[name].settings
    read: _Settings = {}
    seen = set()
    for part in filter(None, (part.strip() for part in settings.split(","))):
        key, _, value = (piece.strip() for piece in part.partition("="))
        key = "gain" if key == "dcg" else key
        if key not in allowed:
            known = f"takes only {', '.join(allowed)}" if allowed else "takes no settings"
            raise UsageError(f"measure {text!r}: no setting {key!r}; {name} {known}")
        if key in seen:
            raise UsageError(f"measure {text!r}: setting {key!r} is given twice")
        seen.add(key)
        _READERS[key](read, value.strip("'\""), f"measure {text!r}: {key}")
    return read


def _read_rel(read: _Settings, value: str, where: str) -> None:
    read["rel"] = _whole_number(value, where)


def _read_max(read: _Settings, value: str, where: str) -> None:
    read["max_grade"] = _whole_number(value, where)
    if read["max_grade"] > LARGEST_GRADE:
        raise UsageError(f"{where}: expected at most {LARGEST_GRADE}, got {value!r}")


def _read_tokens(read: _Settings, value: str, where: str) -> None:
    read["tokens"] = _whole_number(value, where)


def _read_gain(read: _Settings, value: str, where: str) -> None:
    if value not in _GAINS:
        raise UsageError(f"{where}: expected 'linear' or 'exp', got {value!r}")
    read["gain"] = _GAINS[value]


def _read_p(read: _Settings, value: str, where: str) -> None:
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if 0.0 < number < 1.0:
        read["p"] = number
    else:
        raise UsageError(f"{where}: expected a number between 0 and 1, got {value!r}")


def _whole_number(value: str, where: str) -> int:
    value = value.strip()
    whole = value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS
    if not whole or int(value) == 0:
        raise UsageError(f"{where}: expected a whole number of at least 1, got {value!r}")
    return int(value)


_GAINS: Final[dict[str, Gain]] = {
    "linear": "linear",
    "exp": "exp",
    "log2": "linear",
    "exp-log2": "exp",
}
_READERS: Final[dict[str, Callable[[_Settings, str, str], None]]] = {
    "rel": _read_rel,
    "max": _read_max,
    "tokens": _read_tokens,
    "gain": _read_gain,
    "p": _read_p,
}
