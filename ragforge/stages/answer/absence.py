"""Expected answers that speak of what is not: nobody knows, the policy does not say, none.

The words are cast wide, in many languages: a false hit costs one call of the judge, and a miss
hides a right answer from it.
"""

import re
from typing import Final

from ragforge.files.unicode_forms import normalize

_WHOLE_WORDS: Final = """
    no not nor never none nobody nothing nowhere neither without cannot cant dont n/a na nil null
    void hardly left open undefined undecided undisclosed unnamed unsaid unstated unsure untold
    unlisted impossible inconclusive blank empty tbd tba
    nicht nichts nie niemals ohne offen
    ne n pas rien personne jamais sans ni
    nadie nada nunca sin ningún
    non niente nulla mai senza né
    não ninguém sem nem
    niet niets niemand nooit geen zonder nergens
    nikt nic nigdy bez żaden
    inte ej icke inget inga aldrig utan saknas ikke intet aldri
    meçhul
    не нет ни никто никого никогда ничего нигде без нельзя
""".split()
_BEGINNINGS: Final = """
    absen lack miss omit omission silen secret myster fail refus declin leav gap
    unanswer unavailab unclear unconfirm undetermin undocument unexplain unknown unmention unpublish
    unrecord unreport unresolv unspecif uncertain indetermin
    niemand kein nirgend fehl unbekannt unklar ungewiss ungenannt unerwähnt
    aucun inconnu manqu incertain ningun falta desconoc desconoz ausen
    nessun manca sconosciut ignot assen nenhum desconhec
    onbekend onduidelijk ontbre brak nieznan niewiadom żadn
    ingen okän oklar ukendt ukjent
    yok değil hiç bilinm belirtilm bilmiyor geçmiyor belirsiz
    неизвест неясн неопредел отсутств
""".split()
_ANYWHERE: Final = """
    n't 不 没 沒 未 无 無 非 否 ない ません なし なく わから 없 않
    모르 모름 모릅 못 아니 미상 미정 불명
""".split()


def _either(parts: list[str]) -> str:
    return "|".join(map(re.escape, parts))


_ABSENCE: Final = re.compile(
    rf"\b(?:{_either(_WHOLE_WORDS)})\b|\b(?:{_either(_BEGINNINGS)})|{_either(_ANYWHERE)}",
    re.IGNORECASE,
)


def speaks_of_absence(text: str) -> bool:
    """Whether a text may say that something is not so, not said or not known."""
    folded = normalize("NFKC", text).replace("\u2019", "'")
    return _ABSENCE.search(folded) is not None
