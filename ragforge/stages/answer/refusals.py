"""Answers that only say that they have no answer, in several languages.

A false hit hides a right answer from the judge, and a miss costs one call. So an answer abstains
only if each of its sentences says that the speaker does not know, or that the sources do not tell,
or is a courtesy; "is not covered" can be the answer itself.
"""

# ruff: noqa: RUF001 -- letters of one script look like those of another; these are meant.

import re
from functools import cache

from ragforge.files.text import normalize

_MOST_WORDS = 40
"""A longer answer that holds such words says something as well."""
_MOST_CHARS = 300
"""The same for scripts without blanks between words."""

_NOT = r"(?:do(?:es)? not|don't|doesn't|did not|didn't|could not|couldn't|cannot|can't|can not)"
_UNABLE = r"(?:am|are|was|were|'m|'re) (?:unable|not able) to"
_WHAT = (
    r"(?:(?:the|an|any|this|that|these|those|enough|sufficient|specific|relevant|such|further|"
    r"more|your) )*(?:information|info|answers?|details?|data|questions?|query|mention|references?)"
)
_OPEN = (
    r"(?:(?:it|this|that)(?: (?:from|based on|with|in|for|at) .+)?|for (?:sure|certain)|"
    r"(?:what|which|whether|why|how|who|whom|when|where)\b.*)"
)
_SOURCES = (
    r"(?:passages?|documents?|documentation|contexts?|texts?|sources?|articles?|excerpts?|"
    r"information)"
)
_TOPIC = (
    r"(?: (?:on|about|regarding|concerning|based on|with|using|in|of|for|to|from|as to|related|"
    r"here|available|provided|given|found|that|which|whether|what|how|why|when|where|who)\b.*)?"
)
_DONE = r"(?:available|found|given|provided|mentioned|specified|stated|included)"

_SAYS_NOTHING = {
    "en": (
        rf"I (?:(?:really|honestly|simply|just) )?{_NOT} (?:actually )?"
        rf"(?:know|say|tell|determine)(?: (?:{_OPEN}|{_WHAT}{_TOPIC}|(?:the|about) .+))?",
        rf"we ?(?:{_NOT}|{_UNABLE}) (?:know|find|answer|determine)"
        rf"(?: (?:this|that|{_WHAT}{_TOPIC}|the (?:cause|reason)\b.*))?",
        rf"I ?(?:{_NOT}|{_UNABLE}) (?:find|see|locate|answer|provide|determine|tell|say|"
        rf"give|help)(?: (?:with )?(?:(?:you|me) )?(?:{_OPEN}|(?:{_WHAT}|anything){_TOPIC}))?",
        rf"(?:I|we) (?:{_NOT} have|have no|lack) (?:access to )?"
        rf"(?:{_WHAT}|(?:that|an|any) (?:idea|knowledge)){_TOPIC}",
        r"I(?:'m| am) not (?:sure|certain)(?: (?:about|what|how|why|who|when|where|which)\b.*)?",
        rf"(?:based on|from|in|according to) [^.]{{0,40}}{_SOURCES}[^.]{{0,20}}, "
        rf"(?:I|we) ?(?:{_NOT}|{_UNABLE}) (?:find|see|answer|determine|tell|say|provide)\b.*",
        rf"(?:the|this|these|your) [^.]{{0,30}}?{_SOURCES}(?: \w+){{0,2}} "
        rf"(?:{_NOT} (?:contain|provide|include|give|offer|have)|"
        rf"(?:contains?|provides?|includes?|gives?|offers?|has|have) no) {_WHAT}{_TOPIC}",
        rf"(?:the|this|these|your) [^.]{{0,30}}?{_SOURCES}(?: \w+){{0,2}} {_NOT} "
        r"(?:mention|say|state|specify|discuss|address|explain|indicate|describe|tell)\b.*",
        rf"(?:the|this|these|your) [^.]{{0,30}}?{_SOURCES}(?: \w+){{0,2}} {_NOT} "
        r"cover (?:it|this|that|the (?:question|topic|subject))",
        rf"none of the [^.]{{0,20}}?{_SOURCES} (?:mentions?|says?|states?|specif(?:y|ies)) "
        r"(?:it|this|that)",
        rf"(?:there is|there's) no (?:information|info|mention|answer){_TOPIC}",
        rf"I (?:found|see|have) no {_WHAT}{_TOPIC}",
        rf"no (?:information|answer|mention|details?|data)"
        rf"(?: (?:is |was |were )?{_DONE})?(?: (?:in|on|about|regarding) .*{_SOURCES}.*)?",
        rf"(?:it|this|that|the (?:answer|information)) (?:(?:is|was) not|isn't|wasn't) {_DONE}"
        rf" (?:in|by|anywhere in) [^.]{{0,40}}{_SOURCES}.*",
        rf"(?:(?:the )?(?:information|answer|data) (?:is )?)?not {_DONE}"
        rf"(?: in [^.]{{0,40}}{_SOURCES}.*)?",
        r"unknown|unanswerable|(?:I have )?no idea|N/A",
    ),
    "de": (
        r"(?:das )?weiß ich (?:leider |auch )?nicht",
        r"ich (?:weiß|kann) (?:es |das |dies |diese frage |die frage |leider |dazu )*nicht"
        r"(?: (?:sagen|beantworten|genau))?(?:,? (?:was|wie|warum|wer|wann|wo|ob)\b.*)?",
        r"kann ich (?:diese frage |das |dies |dazu |die frage )?(?:leider )?nicht "
        r"(?:beantworten|sagen)",
        r"(?:diese|die) frage (?:kann|lässt sich) (?:ich )?[^.]{0,60}nicht "
        r"beantwort(?:en|et werden)",
        r"(?:dazu|darüber|hierzu) (?:habe|finde|finden|liegen|gibt)(?: \w+){0,2} keine "
        r"(?:informationen|angaben|auskunft|daten)(?: (?:vor|gefunden))?",
        r"keine (?:angaben?|antwort|informationen?)"
        r"(?: (?:dazu|hierzu|darüber|gefunden|vorhanden|verfügbar))*",
        r"(?:die|den|der|das|dem|in den|im|in der|aus den|aus dem) (?:\w+ )?(?:dokumente?n?|"
        r"unterlagen|texte?n?|quellen?|kontext|textstellen|abschnitte?n?|dokumentation) "
        r"(?:enthalten|enthält|liefern|nennen|nennt|geben|gibt|steht|stehen|finden sich|"
        r"findet sich)"
        r" (?:dazu |darüber |hierzu )?"
        r"(?:keine (?:informationen|angaben|antwort|auskunft)|nichts)"
        r"(?: (?:dazu|darüber|hierzu|zu|über|zur|zum)\b.*)?",
        r"unbekannt|nicht (?:angegeben|erwähnt|bekannt)",
    ),
    "fr": (
        r"je (?:ne|n') ?(?:le |la )?sais pas"
        r"(?: (?:la réponse|quoi|comment|quand|qui|où|pourquoi|si|ce (?:que|qui))\b.*)?",
        r"je (?:ne|n') ?(?:trouve|dispose|ai|peux)(?: \w+)? (?:pas|aucune)(?: \w+){0,2} "
        r"(?:de (?:réponse|cette information)|d'informations?|informations?|la réponse|"
        r"(?:répondre )?à cette question)\b.*",
        r"(?:le|les|ce|ces|cette|la) (?:documents?|textes?|passages?|contexte|sources?|"
        r"documentation|extraits?)(?: \w+)? "
        r"(?:ne (?:mentionne(?:nt)?|précise(?:nt)?|disent|dit) (?:pas|rien|"
        r"aucune)\b.*|ne (?:contien(?:nen)?t|fournit|fournissent) (?:pas|aucune) (?:d'|de )?"
        r"(?:informations?|réponse)\b.*)",
        r"(?:il n'y a )?(?:aucune|pas d')(?: ?)(?:information|réponse)s?"
        r"(?: (?:disponible|trouvée|à ce sujet|sur ce sujet))?",
        r"inconnue?|non (?:précisé|mentionné|spécifié)e?",
    ),
    "es": (
        r"no (?:lo )?sé(?: (?:la respuesta|qué|cómo|cuándo|quién|por qué|dónde)\b.*)?",
        r"no (?:puedo|podemos|pude) (?:responder|contestar|encontrar (?:la|una|esa|esta) "
        r"(?:respuesta|información))\b.*",
        r"no (?:encuentro|encontré|tengo|dispongo de|hay) (?:ninguna |suficiente |la )*"
        r"(?:información|respuesta|datos)\b.*",
        r"(?:el|los|las|la|este|estos) (?:documentos?|textos?|pasajes?|contexto|fuentes?|"
        r"documentación|fragmentos?)(?: \w+)? no (?:(?:mencionan?|indican?|especifican?|"
        r"dicen?)\b.*|(?:contienen?|proporcionan?) (?:ninguna |la )?(?:información|respuesta)\b.*)",
        r"desconocid[oa]|no (?:especificado|mencionado|se (?:menciona|especifica|indica|sabe))",
    ),
    "it": (
        r"non (?:lo )?so(?: (?:la risposta|cosa|come|quando|chi|perché|dove)\b.*)?",
        r"non (?:posso|sono in grado di|riesco a) (?:rispondere|trovare (?:la|una|questa) "
        r"(?:risposta|informazione))\b.*",
        r"non (?:trovo|ho(?: trovato)?|ci sono|dispongo di) (?:alcuna |abbastanza |sufficienti )*"
        r"(?:informazion[ei]|rispost[ae])\b.*",
        r"(?:il|i|la|le|questi?|questo) (?:document[oi]|test[oi]|contesto|font[ei]|"
        r"documentazione|passagg[io]+)(?: \w+)? non (?:(?:menziona(?:no)?|"
        r"specifica(?:no)?|indica(?:no)?|dic(?:e|ono))\b.*|(?:contien(?:e|gono)|fornisc(?:e|ono)) "
        r"(?:alcuna )?(?:informazion[ei]|rispost[ae])\b.*)",
        r"sconosciut[oa]|non (?:specificat[oa]|menzionat[oa]|indicat[oa])",
    ),
    "pt": (
        r"(?:eu )?não (?:o )?sei(?: (?:a resposta|o que|como|quando|quem|onde)\b.*)?",
        r"(?:eu )?não (?:posso|consigo|é possível) (?:responder|encontrar (?:a|uma|essa|esta) "
        r"(?:resposta|informação))\b.*",
        r"(?:eu )?não (?:encontrei|encontro|tenho|há|existem?) (?:nenhuma |qualquer )*"
        r"(?:informaç(?:ão|ões)|respostas?|dados)\b.*",
        r"(?:o|os|a|as|este|estes) (?:documentos?|textos?|contexto|fontes?|documentação|trechos?)"
        r"(?: \w+)? não (?:(?:mencionam?|especificam?|indicam?|dizem|diz)\b.*|"
        r"(?:cont[éê]m|fornecem?) (?:nenhuma )?(?:informaç(?:ão|ões)|respostas?)\b.*)",
        r"desconhecid[oa]|não (?:especificado|mencionado|informado)",
    ),
    "nl": (
        r"(?:dat )?weet ik (?:helaas )?niet",
        r"ik weet (?:het|dat) (?:helaas )?niet",
        r"ik kan (?:dit|dat|deze vraag|de vraag|het antwoord)(?: \w+){0,3} niet "
        r"(?:beantwoorden|vinden|zeggen)\b.*",
        r"(?:ik heb|er is|ik vind) (?:hierover |hiervoor )?geen "
        r"(?:informatie|antwoord|gegevens)\b.*",
        r"(?:de|het|deze|dit) (?:documenten|document|tekst(?:en)?|context|bronnen|passages?)"
        r"(?: \w+)? (?:bevat(?:ten)?|vermeld(?:t|en)|geeft|geven|noem(?:t|en)) "
        r"(?:(?:hierover |dit |dat )(?:niet|niets)|geen (?:informatie|antwoord|gegevens))\b.*",
        r"onbekend|niet (?:vermeld|gespecificeerd|genoemd)",
    ),
    "pl": (
        r"nie wiem(?:,? (?:co|jak|kiedy|kto|gdzie|dlaczego|czy)\b.*)?",
        r"nie (?:mogę|potrafię|jestem w stanie) (?:odpowiedzieć|znaleźć (?:odpowiedzi|informacji))"
        r"\b.*",
        r"(?:nie (?:mam|ma|znalazłem|znalazłam|znaleziono)|brak) (?:\w+ )?"
        r"(?:informacji|odpowiedzi|danych)(?: (?:na ten temat|o tym|w .*))?",
        r"(?:te |podane |dostarczone )?(?:dokumenty|dokument|teksty|tekst|kontekst|źródła) nie "
        r"(?:(?:wspomina(?:ją)?|podaj[eą]|określa(?:ją)?)\b.*|"
        r"zawiera(?:ją)? (?:\w+ )?(?:informacji|odpowiedzi)\b.*)",
        r"nieznan[eyao]|nie (?:podano|określono|wspomniano)",
    ),
    "sv": (
        r"(?:det )?vet jag (?:tyvärr )?inte|jag vet (?:tyvärr )?inte(?: (?:det|vad|hur|när|vem|var)"
        r"\b.*)?",
        r"jag kan (?:tyvärr )?inte (?:svara|besvara|hitta (?:svaret|någon information))\b.*",
        r"(?:det finns|jag (?:har|hittar)) (?:tyvärr )?ingen information\b.*",
        r"(?:dokumenten|texten|källorna|underlaget) (?:(?:nämner|anger|säger) inte\b.*|"
        r"innehåller ingen information\b.*)",
        r"okänt|ej angivet|inte angivet",
    ),
    "tr": (
        r"(?:bunu )?bilmiyorum",
        r"(?:bu (?:soruya|soruyu) )?(?:cevap veremiyorum|yanıtlayamıyorum|cevaplayamıyorum)",
        r"(?:bu konuda )?(?:yeterli )?(?:bir )?bilgi(?:m)? "
        r"(?:yok|bulunmuyor|bulunmamaktadır|bulamadım)",
        r"(?:belgelerde|metinde|belgede|kaynaklarda|bağlamda) .{0,60}"
        r"(?:bilgi (?:yok|bulunmuyor|bulunmamaktadır)|belirtilmemiş(?:tir)?|geçmiyor)",
        r"bilinmiyor|belirtilmemiş(?:tir)?",
    ),
    "ru": (
        r"(?:я )?(?:этого )?не знаю(?:,? (?:что|как|когда|кто|где|почему)\b.*)?",
        r"(?:я )?не (?:могу|удалось) (?:ответить|найти (?:ответ|информацию|эту информацию))\b.*",
        r"(?:у меня )?(?:нет|не найдено|отсутствует) (?:\w+ )?"
        r"(?:информации|информация|ответа|данных)"
        r"(?: (?:об этом|по этому вопросу|в (?:документах|тексте|источниках|контексте)))?",
        r"в (?:\w+ )?(?:документах|документе|тексте|источниках|контексте) (?:об этом )?"
        r"(?:не (?:указан[оаы]?|упомина(?:ется|ются)|сказано|говорится|содержится)"
        r"|нет (?:информации|ответа|данных))\b.*",
        r"неизвестно|не указано|не упоминается",
    ),
    "zh": (
        r"(?:我|我们)?(?:也)?(?:不知道|不清楚|无法(?:回答|确定|得知)|不能回答)"
        r"(?:这个问题|该问题|此问题|答案)?",
        r"(?:我)?(?:没有|未)(?:找到|提到|提及|说明|相关)(?:相关)?(?:的)?(?:信息|内容|资料|答案)?",
        r"(?:根据)?(?:所)?(?:提供的|给定的|这些|上述|该)?(?:文档|文件|文本|资料|上下文|文章|段落|内容)"
        r"(?:中|里)?[,,]?(?:并)?(?:没有|未|无法)(?:提到|提及|说明|包含|找到|提供|回答|确定).{0,40}",
        r"未知|不详|(?:暂)?无(?:相关)?(?:信息|资料|答案)",
    ),
    "ja": (
        r"(?:それは|その答えは|答えは)?(?:わかりません|分かりません|不明です|存じません|知りません)",
        r"(?:この|その|ご)?質問(?:には|に)?(?:お答え|回答|答えること)(?:が|は)?(?:できません|"
        r"いたしかねます)",
        r".{0,20}(?:文書|資料|文章|本文|コンテキスト|ドキュメント|テキスト|情報源)(?:に|には|では|から)"
        r"(?:は)?.{0,30}(?:記載(?:が|は|されて)?(?:ありません|いません)|書かれていません|"
        r"言及されていません|含まれていません|見つかりません(?:でした)?)",
        r".{0,20}(?:情報|答え|回答)(?:が|は)(?:見つかりません(?:でした)?|ありません)",
        r"不明|記載なし|情報なし",
    ),
    "ko": (
        r"(?:저는 )?(?:잘 )?(?:모르겠습니다|모릅니다|모르겠어요|모르겠다|알 수 없습니다)",
        r"(?:이|그|해당)? ?(?:질문에|질문에는) (?:답변|대답|답)(?:할 수 없습니다|드릴 수 없습니다)",
        r".{0,30}(?:정보|내용|답변|답)(?:가|이|를|을|은|는) (?:없습니다|찾을 수 없습니다|"
        r"포함되어 있지 않습니다|제공되지 않았습니다)",
        r".{0,20}(?:문서|자료|텍스트|문맥|본문)(?:에|에는|에서|에서는) .{0,30}"
        r"(?:언급(?:되어 있지|되지|하지) (?:않습니다|않았습니다)|나와 있지 않습니다|없습니다)",
        r"알 수 없음|정보 없음|언급 없음",
    ),
}

_OPENINGS = (
    r"(?:(?:(?:I'm|I am|we're|we are) )?(?:very |so )?sorry|unfortunately|regrettably|apologies|"
    r"I apologi[sz]e|leider|entschuldigung|es tut mir leid|tut mir leid|désolée?|malheureusement|"
    r"je suis désolée?|lo siento|lamentablemente|desafortunadamente|mi dispiace|purtroppo|"
    r"desculpe|infelizmente|lamento|sorry|helaas|niestety|przepraszam|tyvärr|üzgünüm|maalesef|"
    r"к сожалению|извините|простите|抱歉|很抱歉|对不起|不好意思|申し訳ありません(?:が)?|"
    r"申し訳ございません(?:が)?|すみません(?:が)?|残念ながら|죄송합니다(?:만)?|죄송하지만|유감스럽게도)"
)
_LINK = r"[\s,;:.!,。、!–—-]*(?:but |aber |mais |pero |ma |mas |maar |ale |men |но |但是?|)?"
_COURTESY = (
    rf"{_OPENINGS}|(?:please|you (?:may|might|can|could) (?:want to )?(?:try|contact|ask|consult))"
    r"\b.*|(?:let me know|feel free|if you (?:have|need|can|provide))\b.*|"
    r"(?:bitte|veuillez|por favor|per favore|alstublieft|пожалуйста)\b.*|(?:请|您可以).*"
)
_CONTRAST = re.compile(
    r"\b(?:but|however|although|though|nevertheless|yet|except|instead|aber|jedoch|allerdings|"
    r"sondern|mais|cependant|toutefois|pero|sin embargo|aunque|però|tuttavia|mas|porém|contudo|"
    r"maar|echter|ale|jednak|men|dock|ama|ancak|но|однако)\b|但|不过|然而|しかし|ただし|하지만|그러나",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])\s*|\n+")
_ENDS = " \t\r\n.!?…\"'*`()[]\u3002\uff01\uff1f"
_NUMBER = re.compile(r"\d+")


_OPENED = re.compile(_OPENINGS + _LINK, re.IGNORECASE)
_POLITE = re.compile(_COURTESY, re.IGNORECASE)
_ANY = re.compile(r"(?<!\\)\.(?=[*+{])")
_CLAUSE = "[^,;:\uff0c\u3001\uff1b\uff1a]"
"""What any text may be in a pattern: behind a comma something else may be said."""


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """Return what says nothing; compiled when first needed, which takes a while."""
    return tuple(
        re.compile(_ANY.sub(lambda _: _CLAUSE, pattern), re.IGNORECASE)
        for patterns in _SAYS_NOTHING.values()
        for pattern in patterns
    )


def abstains(answer: str, query: str = "") -> bool:
    """Whether an answer says that it does not know and nothing else, or is empty.

    Args:
        answer: What the system said.
        query: What it was asked; a number that does not come from there is a statement.
    """
    folded = normalize("NFC", answer).replace("\u2019", "'")
    parts = [part.strip(_ENDS) for part in _SENTENCE_END.split(folded)]
    sentences = [part for part in parts if part]
    if not sentences:
        return not answer.strip()
    if len(folded.split()) > _MOST_WORDS or len(folded) > _MOST_CHARS:
        return False
    if not set(_NUMBER.findall(folded)) <= set(_NUMBER.findall(query)):
        return False
    rests = [_OPENED.sub("", sentence, count=1) for sentence in sentences]
    if any(_CONTRAST.search(rest) for rest in rests):
        return False
    silent = [any(pattern.fullmatch(rest) for pattern in _patterns()) for rest in rests]
    polite = [_POLITE.fullmatch(sentence) is not None for sentence in sentences]
    return any(silent) and all(map(max, silent, polite))
