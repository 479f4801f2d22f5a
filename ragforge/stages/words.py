"""Words that give away the language of a short text, and words that carry no content.

Each list holds the commonest words of questions and short answers. A word that several languages
share tells little and counts for each of them; technical words of English are in none.
"""

# ruff: noqa: RUF001, E501 -- letters of one script look like those of another; these are meant.

import re
from functools import cache

from ragforge.files.text import normalize

_IDEOGRAPH = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
_WORD = re.compile(
    rf"{_IDEOGRAPH}|(?:(?!{_IDEOGRAPH})[^\W_])+(?:['\u2019.](?:(?!{_IDEOGRAPH})[^\W_])+)*"
)
"""Scripts without blanks between words are compared character by character."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n+")
_STOP = frozenset(
    "a about after all also an and any are as at be been being but by can could did do does doing "
    "for from get had has have he her his how i if in into is it its me my no not of on or our "
    "out shall she should so some than that the their them then there these they this those to up "
    "us was we were what when where which who whom whose why will with would you your".split()
)
_SUFFIXES = ("ations", "ation", "ings", "ing", "edly", "ies", "ed", "es", "ly", "s", "e")
_SHORTEST_STEM = 3

_LISTS = {
    "en": "the of and to in is are was were be been what which who whom whose when where why how "
    "does do did can could should would will must has have had it its this that these those with "
    "for from by on at as or an if than into not there their they you your i my we our between "
    "about after before when while because such only also both each other any some no a",
    "de": "der die das den dem des ein eine einen einem einer eines und oder ist sind war "
    "waren wird werden wurde wurden was welche welcher welches welchen welchem wer wen wem wie warum "
    "wieso wann wo wozu wofür womit kann können muss müssen soll sollte darf hat haben ich du er "
    "sie es wir ihr man mein meine sich nicht kein keine mit von vom zu zum zur im in an am auf aus "
    "bei beim nach für durch über unter zwischen wenn dass ob als auch nur noch gibt dieser diese "
    "dieses so bis um aber mehr",
    "fr": "le la les l un une des du de d et ou est sont était étaient être qui que quoi quel "
    "quelle quels quelles quand où pourquoi comment combien peut peuvent faut doit doivent a ont "
    "avoir fait faire je tu il elle on nous vous ils elles mon ma mes son sa ses leur ce cet cette "
    "ces ne pas plus avec pour par sur sous dans en entre sans vers si au aux se lorsque lors "
    "puis-je qu s c n j y",
    "es": "el la los las lo un una unos unas de del y o u es son era eran ser está están qué que "
    "quién quien cuál cuáles cuándo cuando dónde donde cómo como cuánto cuánta cuántos por para "
    "con sin en entre sobre al se su sus mi mis puede puedo pueden debe debo deben hay ha han "
    "tiene tienen yo tú él ella no más si cuyo desde hasta este esta estos estas hace sirve porque",
    "it": "il lo la i gli le un uno una di del della dello dei degli delle e o è sono era erano "
    "essere che chi cosa quale quali qual quando dove perché come quanto quanti quante per con su "
    "sul sulla tra fra in nel nella nei nelle al alla ai alle da dal dalla si mi può posso possono "
    "deve devo devono ha hanno ho non più se questo questa questi cui dell all nell l d c'è",
    "pt": "o a os as um uma uns umas de do da dos das e ou é são era eram ser está estão que qual "
    "quais quem quando onde por porque como quanto quantos para com sem em no na nos nas entre "
    "sobre ao à aos às se seu sua seus suas meu minha pode posso podem deve devo devem há tem têm "
    "eu ele ela não mais pelo pela este esta isso isto acontece faz fazer",
    "nl": "de het een en of is zijn was waren wordt worden werd werden wat welke welk wie wanneer "
    "waar waarom hoe hoeveel kan kun kunnen moet moeten mag heeft hebben heb ik je jij hij zij ze "
    "we wij mijn zijn haar niet geen met van voor door op aan in uit bij naar om te tot over onder "
    "tussen als dat dit deze die er ook maar nog dan stel doe gebeurt waarmee",
    "sv": "och eller är var vara en ett den det de som vad vilken vilket vilka vem när varför hur "
    "kan ska måste har hade jag du han hon vi man min sin inte ingen med av för från till på i om "
    "mellan under över vid genom att så också bara mer blir används gör finns",
    "da": "og eller er var være en et den det de som hvad hvilken hvilket hvilke hvem hvornår hvor "
    "hvorfor hvordan kan skal må har havde jeg du han hun vi man min sin ikke ingen med af for fra "
    "til på i om mellem under over ved gennem at så også kun mere bliver bruges gør findes",
    "no": "og eller er var være en et ei den det de som hva hvilken hvilket hvilke hvem når hvor "
    "hvorfor hvordan kan skal må har hadde jeg du han hun vi man min sin ikke ingen med av for fra "
    "til på i om mellom under over ved gjennom å at så også bare mer blir brukes gjør finnes",
    "fi": "ja tai on ovat oli olivat olla mikä mitä mitkä kuka kuinka miten miksi milloin missä "
    "mistä mihin voi voin voivat pitää täytyy minä sinä hän me ei eivät kanssa joka jotka kun jos "
    "että myös vain paljon tämä nämä se ne kuin",
    "pl": "i oraz lub albo jest są był była było były być co jaki jaka jakie jakich kto kiedy gdzie "
    "dlaczego jak czy ile może można mogę musi należy ma mają ja ty on ona nie z ze od do na w we "
    "po przez dla między pod nad przy jeśli że się to ten ta te tego który która które służy",
    "cs": "a nebo je jsou byl byla bylo byly být co jaký jaká jaké který která které kdo kdy kde "
    "proč jak zda kolik může mohu musí má mají já ty on ona není ne s se z ze od do na v ve po "
    "přes pro mezi pod nad při pokud že to ten ta jako nebo když slouží",
    "tr": "ve veya ya da ile ne nedir nasıl neden niçin niye kim hangi hangisi nerede nereye zaman "
    "kaç kadar için gibi mı mi mu mü bir bu şu o ben sen biz siz değil var yok daha çok en ancak "
    "eğer olarak olan sonra önce arasında olur edilir yapılır",
    "hu": "a az és vagy egy mi mit mik milyen melyik ki mikor hol hova miért hogyan hány mennyi "
    "lehet kell van vannak volt nem nincs is csak de ha hogy mint ez ezek ezt azt között után "
    "előtt szerint által alatt",
    "ro": "și sau este sunt era erau fi ce care cine când unde cum câți câte cât poate pot trebuie "
    "are au eu tu el ea nu cu de la din pe în prin pentru între după dacă că un o unei unui al ale "
    "mai doar această acest se",
    "id": "dan atau adalah yang apa siapa kapan dimana mana mengapa kenapa bagaimana berapa dapat "
    "bisa harus ada tidak bukan dengan untuk dari ke di pada oleh dalam antara jika kalau ini itu "
    "saya kamu kita kami mereka akan sudah juga hanya lebih sebuah cara",
    "vi": "và hoặc là của gì nào ai khi đâu sao thế làm như bao nhiêu có thể phải không được với "
    "cho từ trong trên dưới giữa nếu thì này đó tôi bạn chúng một các những để bằng cách tại",
    "ru": "и или а но в во на с со к ко по из от до для за о об при между под над это этот эта эти "
    "что кто какой какая какое какие каким каких как когда где почему зачем сколько чем чему ли "
    "есть был была было были быть может можно нужно надо не нет он она они я мы вы его её их если "
    "чтобы то же бы только",
    "uk": "і й або та але в у на з із зі до по від для за про при між під над це цей ця ці що хто "
    "який яка яке які яким як коли де чому навіщо скільки чим чи є був була було були бути може "
    "можна потрібно треба не немає він вона вони я ми ви його її їх якщо щоб то ж би лише",
    "ar": "في من إلى على عن مع ما ماذا هل كيف متى أين لماذا من كم أي هو هي هم هذا هذه ذلك تلك التي "
    "الذي الذين أو و ثم لا لم لن ليس كان كانت يكون تكون أن إن إذا بين بعد قبل عند كل",
}
_SINGLE = {
    "zh": "的了吗呢吧是在有和与或及被把从到对为这那其之将以于也都就还不没么什怎如何哪谁几多少",
    "ja": "のはがをにへとでもやかねよなだですまるいうえおこそあどれっらりしたてんきくけさせ何",
}


def words(text: str) -> list[str]:
    """Return the words of a text, case and compatibility forms folded, in order."""
    folded = normalize("NFKC", text).casefold()
    return [match.group().replace("\u2019", "'") for match in _WORD.finditer(folded)]


def content_stems(text: str) -> list[str]:
    """Return the stems of the words that carry content, in order."""
    return [stem(word) for word in words(text) if word not in _STOP]


def is_stop_word(word: str) -> bool:
    """Whether a word, its case folded, is one that `content_stems` leaves out."""
    return word in _STOP


def stem(word: str) -> str:
    """Cut one common English ending off a word of a baseline; other languages pass unchanged."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word[: -len(suffix)]
    return word


def numbers(text: str) -> set[str]:
    """Return the numbers of a text, thousands separators aside."""
    found = _NUMBER.findall(text)
    return {re.sub(r",(?=\d{3}\b)", "", number).rstrip(".,") for number in found}


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text, stripped, empty ones left out."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


@cache
def function_words(language: str) -> frozenset[str]:
    """Return the words of a language that carry no content; empty where no list is kept.

    For Chinese and Japanese these are single characters.

    Args:
        language: ISO 639-1 code.
    """
    words = frozenset(_LISTS.get(language, "").split()) | frozenset(_SINGLE.get(language, ""))
    return words | {"c", "d", "l"} if language == "it" else words


@cache
def languages_by_word() -> dict[str, tuple[str, ...]]:
    """Return for each word the languages that use it as a function word."""
    found: dict[str, tuple[str, ...]] = {}
    for language, words in _LISTS.items():
        for word in dict.fromkeys(words.split()):
            found[word] = (*found.get(word, ()), language)
    return found
