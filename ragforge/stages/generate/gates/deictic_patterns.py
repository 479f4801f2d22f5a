"""How a question points at a text that its reader does not see, in several languages."""

# ruff: noqa: RUF001, E501 -- letters of one script look like those of another; these are meant. A
# pattern that is cut in two reads worse than a long line.

from typing import Final

_TEXT = r"(?:passages?|excerpts?|texts?|snippets?|paragraphs?|articles?)"
_NOUN = (
    r"(?:passages?|excerpts?|texts?|snippets?|paragraphs?|articles?|documents?|documentation|"
    r"contexts?|sections?|chunks?|tables?|pages?|chapters?|figures?|diagrams?|guide|tutorial|"
    r"examples?|code (?:examples?|snippets?|samples?)|information|sources?|material|content)"
)
_HALT = (
    r"(?=\s*(?:$|[?.,;:!)\]]|(?:above|below|provided|given|itself|what|which|who|how|why|when|where|"
    r"is|are|was|were|does|do|did|can|should|must|will|has|have|in|for|on|about|regarding|to|and|or|"
    r"shows?|says?|means?|tells?|describes?|explains?|illustrates?|contains?)"
    r"\b))"
)
_TOLD = (
    r"(?:mentioned|described|discussed|stated|said|explained|presented|outlined|noted|recommended|"
    r"covered|detailed|suggested|reported|cited|provided|given|listed|specified|referred to|"
    r"introduced|summari[sz]ed|quoted|highlighted)"
)
_TELL = (
    r"(?:say|state|mention|describe|suggest|imply|recommend|explain|discuss|claim|argue|tell|"
    r"indicate|conclude|advise|note|report|warn|propose|emphasi[sz]e|highlight|cover|refer|cite|"
    r"list|specify|present|outline)"
)
ENGLISH: Final[tuple[str, ...]] = (
    rf"\baccording to (?:the|this|that|these|those) (?:\w+ ){{0,2}}?"
    rf"(?!documentation|information|sources?){_NOUN}{_HALT}",
    rf"\baccording to the (?:given|provided|above|following) {_NOUN}\b",
    rf"(?:^|, )(?:based on|as per|given|per|from|in) the (?:(?:given|provided|above) )?"
    rf"(?:{_TEXT}|context|document|documentation|table|section)(?:,|\?|\.|$|(?= (?:what|which|who|how|why"
    rf"|when|where)\b))",
    rf"\bbased (?:only |solely )?on the (?:given |provided |above )?{_TEXT}{_HALT}",
    rf"\b{_TOLD} (?:\w+ ){{0,2}}?(?:in|by|within|on|throughout) (?:the|this|these) (?:\w+ )??{_NOUN}{_HALT}",
    rf"\b(?:does|do|did|is|are|was|were) (?:the|this) (?:{_TEXT}|document|section|chapter|page|table|"
    rf"guide|tutorial|documentation) {_TELL}\b",
    rf"\b(?:the|this) (?:{_TEXT}|document|section|chapter|guide|tutorial) {_TELL}s?\b(?! of\b)",
    rf"\bin the (?:code )?(?:{_TEXT}|examples?|samples?)(?:\?|, )(?<!context, )",
    rf"\b(?:this|these) (?:particular |specific |given )?{_NOUN}{_HALT}",
    rf"\bthe (?:given|provided|above|aforementioned|supplied) {_NOUN}\b",
    rf"\bthe following {_TEXT}\b",
    r"\bthe (?:passage|excerpt)(?! of\b)(?=\s*(?:$|[?.,;:]|(?:is|are|does|do|did|above|below)\b))",
    rf"\b(?:{_NOUN}|list|steps|code|image) (?:above|below)(?! (?:the|a|an|it|which|zero|its|\d))\b",
    r"\b(?:mentioned|described|shown|discussed|stated|noted|listed|explained|given|outlined|defined|"
    r"presented|provided|introduced) (?:above|below|earlier|previously|here)(?! (?:the|a|an|than)\b)\b",
    r"\b(?:previously|above|afore)[- ]?(?:mentioned|described|stated|discussed)\b|\baforesaid\b",
    r"\bas (?:mentioned|noted|stated|shown|described|discussed)(?=\s*(?:[,.?]|above|below|earlier|"
    r"before|here|$))",
    r"\b(?:see|in the|from the|of the|to the) above\b",
    rf"\b(?:does|do|did) the (?:authors?|writers?|speaker|narrator)s? {_TELL}\b",
    r"\b(?:according to|as) the (?:authors?|writers?|speaker|narrator)"
    r"(?=\s*(?:$|[?.,]|(?:say|state|of this|what|which|how|why)))",
    rf"\bthe (?:authors?|writers?|speaker|narrator) {_TELL}(?:s|ed|d)?\b",
    r"\bthe (?:provided|given) (?:data|details|facts)\b",
    r"\b(?:which|what|who|how many|any|all|none|one|two|three|each|some) (?:\w+ )?of the following\b(?!-)",
    r"\bbased on (?:the |this |these )?(?:information|details?|facts?|data|content|material)"
    r" (?:provided|given|above|below|presented|supplied|shown)\b",
    rf"\b(?:does|do|did) (?:the|these|this) (?:official )?(?:docs|manual|readme|handbook) {_TELL}\b",
    r"\b(?:according to|as per|in) the (?:docs|manual|readme)(?=\s*(?:$|[?,]))",
    r"\b(?:does|do|did) the (?:code (?:snippet|example|block|sample)|snippet|sample code|example|listing|code) "
    r"(?:do|show|demonstrate|illustrate|print|output)\b(?! in\b)",
    r"\b(?:in|within|from|by|does|is|according to) the (?!(?:first|last|next|previous|second|third|"
    r"same|current|final|opening|new)\b)(?:\w+ ){1,4}chapter\b(?! of\b)",
    rf"\b(?:{_TOLD} (?:\w+ )?(?:in|by|within)|according to|as per) the (?:\w+ ){{1,4}}(?:section|chapter)\b"
    r"(?! (?:of|in)\b)",
    rf"\b(?:does|do|did) the (?:\w+ ){{1,4}}(?:section|chapter|paragraph) {_TELL}\b",
)

_THING = (
    r"(?:features?|options?|settings?|functions?|methods?|parameters?|arguments?|librar(?:y|ies)|tools?|"
    r"modules?|approach(?:es)?|techniques?|versions?|releases?|products?|projects?|packages?|commands?|"
    r"errors?|exceptions?|concepts?|limits?|behaviou?rs?|configurations?|mechanisms?|process(?:es)?|"
    r"systems?|apis?|endpoints?|steps?|changes?|clients?|services?|polic(?:y|ies)|rules?|models?|"
    r"frameworks?|plugins?|flags?|strateg(?:y|ies)|terms?)"
)
_ASKS = (
    r"(?:what|how|why|when|where|who|which|is|are|does|do|did|can|could|should|must|will|has|have)"
)
_AUX = r"(?:do|does|did|is|are|was|were|can|could|should|will|would|must|has|have|'s)"
BACKWARD: Final[tuple[str, ...]] = (
    rf"^(?:and |so |in )?{_ASKS} (?:[a-z'-]+ ){{0,4}}?(?<!that )(?:this|these) {_THING}\b(?!\s*[:(]|\s+\?|-| of\b| from\b)",
    rf"^(?:in|with|for|under) (?:this|these) (?:{_THING}|case|situation|context|scenario)(?=,)",
    r"\bthe (?:mentioned|described|discussed|above-mentioned) [a-z]+(?! (?:in|by|at|on|as)\b)\b",
    r"^(?:which|what|who|how many)(?: one)? of (?:these|those)\b(?! who\b|.*:)",
    rf"^(?!what time)(?:what|how|why|when|where|who|which)(?: [a-z]+)?(?: {_AUX}|'s)(?: (?:I|you|we|one|people|users) [a-z]+)? "
    r"(?-i:it|they|them)(?: [a-z]+ly)?(?: (?!to\b|that\b|when\b|if\b|rain\b|snow\b|hail\b)[a-z]+)?(?: \?|\?|$)",
    r"^(?:what|how|why|when|where|who|which)(?: [a-z]+)? (?:do|does|did|is|are|was|were|can|should) (?:this|these|those)(?: [a-z]+)?\?$",
    r"\bthe [a-z]+ (?:described|mentioned|discussed)\?$|\boutput of the (?:code|snippet|example|program)\b"
    r"(?=\?|$)",
    r"^(?:is|are|does|do|can|should|will|has|have) (?-i:it|they)(?: (?!to\b|that\b|when\b|if\b|raining|snowing)[a-z-]+){1,2}\?$",
    # Other languages: "which of the following", "the one mentioned".
    r"\bwelche[rsnm]? der (?:folgenden|nachstehenden)\b|\b(?:der|die|das|den|dem) (?:erwähnte|genannte)[nrs]? \w+",
    r"\b(?:lequel|laquelle|lesquels|lesquelles) des? .{0,40}suivante?s\b|\b(?:la|le|les) \w+ mentionnée?s?\b(?! (?:dans|par)\b)",
    r"\bcuál(?:es)? de (?:los|las) siguientes\b|\b(?:el|la|los|las) \w+ mencionad[oa]s?\b(?! (?:en|por)\b)",
    r"\bqual[ei]? (?:dei|delle|degli|tra i|tra le) seguenti\b|\bquais d[oa]s seguintes\b|\bwelke van de volgende\b",
)
"""How a question points at something said before, which a follow-up may."""

_DE_NOUN = (
    r"(?:Text(?:es|s|stelle|ausschnitt|abschnitt)?|Dokument(?:s|es|en)?|Passagen?|Abschnitte?s?|"
    r"Auszugs?|Kontexte?s?|Artikels?|Tabellen?|Ausschnitte?s?|Absatz(?:es)?|Kapitels?)"
)
_FR_NOUN = (
    r"(?:textes?|documents?|passages?|extraits?|paragraphes?|contexte|articles?|tableaux?|"
    r"sections?|chapitre)"
)
_ES_NOUN = (
    r"(?:textos?|documentos?|pasajes?|fragmentos?|extractos?|párrafos?|contexto|artículos?|tablas?|"
    r"secci(?:ón|ones)|capítulo)"
)
_IT_NOUN = (
    r"(?:test[oi]|document[oi]|passaggi?o?|bran[oi]|estratt[oi]|paragraf[oi]|contesto|articol[oi]|"
    r"tabell[ae]|sezion[ei]|capitolo)"
)
_PT_NOUN = (
    r"(?:textos?|documentos?|passage(?:m|ns)|trechos?|excertos?|parágrafos?|contexto|artigos?|"
    r"tabelas?|seç(?:ão|ões)|secç(?:ão|ões)|capítulo)"
)
_NL_NOUN = (
    r"(?:tekst(?:en|fragment)?|document(?:en)?|passages?|fragment(?:en)?|alinea|context|artikel|"
    r"tabel(?:len)?|paragraaf|sectie|hoofdstuk)"
)
_RU_NOUN = (
    r"(?:текст\w{0,2}|документ\w{0,2}|отрыв(?:ок|к\w{1,2})|фрагмент\w{0,2}|абзац\w{0,2}|"
    r"контекст\w{0,2}|стать\w{1,2}|таблиц\w{1,2}|раздел\w{0,2}|глав\w{1,2})"
)
_AR_NOUN = r"(?:نص|نصوص|وثيقة|مستند|مقطع|فقرة|مقال|مقالة|سياق|جدول|قسم|فصل)"
_ZH_NOUN = r"(?:文字|文档|文章|文本|段落|段文字|原文|材料|资料|上下文|表格|章节|内容|片段|节选)"
_JA_NOUN = (
    r"(?:文章|文書|文脈|テキスト|ドキュメント|記事|段落|資料|表|節|セクション|抜粋|本文|パッセージ)"
)
_LATIN_HALT = r"(?=\s*(?:$|[,?.;:!)]))"

OTHERS: Final[dict[str, tuple[str, ...]]] = {
    "de": (
        rf"\b(?:laut|gemäß) (?:dem|der|den|des|diese[mrs]) (?:\w+en )?{_DE_NOUN}\b(?! ?(?:\d|§))",
        rf"\b(?:dem|der|diese[mr]) {_DE_NOUN} (?:zufolge|nach(?=,|\?))",
        rf"\b(?:im|in de[mrn]|in diese[mrn]|vom|von diese[mrn]) (?:\w+en )?{_DE_NOUN} (?:\w+ ){{0,4}}?"
        r"(?:erwähnt|genannt|beschrieben|erläutert|angegeben|dargestellt|aufgeführt|behandelt|"
        r"erklärt|gesagt|empfohlen)",
        r"\b(?:sagt|besagt|beschreibt|erwähnt|nennt|empfiehlt|erklärt|behauptet|steht in|steht im) "
        rf"(?:der|das|die|dem|diese[rsm]?)? ?{_DE_NOUN}\b(?! ?(?:\d|§))",
        rf"\b(?:der|das|die|diese[rs]?) {_DE_NOUN} (?:sagt|besagt|beschreibt|erwähnt|empfiehlt)\b",
        rf"\bdiese[rsmn]? (?:\w+ )?{_DE_NOUN}\b",
        rf"\b(?:vorliegende|gegebene|bereitgestellte|obige|angegebene|nachstehende)[rsmn]? {_DE_NOUN}\b",
        r"\b(?:oben|unten|vorstehend|nachstehend|zuvor) ?(?:genannt|erwähnt|beschrieben|aufgeführt|"
        r"gezeigt|stehend|angegeben)\w*",
        rf"\b(?:wie|siehe) oben\b|\b(?:{_DE_NOUN}|Beispiel|Abbildung) (?:oben|unten)\b",
        r"\b(?:laut|sagt|sagen|meint|meinen|beschreibt|beschreiben) (?:der|dem|den|die) Autor(?:en|s|in)?\b",
        rf"^(?:im|in der|in dem) {_DE_NOUN}(?:,|\?)",
    ),
    "fr": (
        rf"\b(?:selon|d'après|conformément (?:à|au)) ?(?:la |le |l'|les |ce |cet |cette |ces )?"
        rf"{_FR_NOUN}(?: (?:fourni|donné|ci-dessus|présenté)\w*)?{_LATIN_HALT}",
        rf"\b(?:mentionn|décri|cit|évoqu|indiqu|présent|expliqu|énumér|abord)\w* (?:dans|par) "
        rf"(?:la |le |l'|les |ce |cet |cette ){_FR_NOUN}\b",
        rf"\b(?:dit|mentionne|décrit|explique|indique|précise|recommande|suggère|affirme)(?:-t-(?:il|elle))? "
        rf"(?:la |le |l'|ce |cet |cette ){_FR_NOUN}\b",
        rf"\b(?:la |le |l'|ce |cet |cette ){_FR_NOUN} (?:dit|mentionne|décrit|explique|indique|précise|"
        r"recommande|suggère|affirme)",
        rf"\b(?:ce|cet|cette|ces) {_FR_NOUN}\b",
        r"\bci-(?:dessus|dessous)\b|\b(?:susmentionn|précité)\w*|"
        r"\b(?:mentionn|décri|cit|indiqu|présent)\w* (?:plus haut|plus bas|précédemment)",
        r"\b(?:selon|dit|disent|pense|affirme|explique|mentionne)(?:-t-il)? (?:l'auteur|les auteurs)\b|"
        r"\b(?:l'auteur|les auteurs) (?:di|pens|affirm|expliqu|mentionn|recommand)\w*",
        rf"\b(?:la |le |l'){_FR_NOUN} (?:fourni|donné|ci-)\w*",
    ),
    "es": (
        rf"\b(?:según|de acuerdo con|conforme a) (?:el|la|los|las|este|esta) {_ES_NOUN}"
        rf"(?: (?:proporcionad|dad|anterior|presentad)\w*)?{_LATIN_HALT}",
        rf"\b(?:mencion|descri|cit|indic|present|explic|enumer|trat)\w* (?:en|por) "
        rf"(?:el|la|los|las|este|esta) {_ES_NOUN}\b",
        r"\b(?:dice|menciona|describe|explica|indica|señala|recomienda|sugiere|afirma) "
        rf"(?:el|la|este|esta) {_ES_NOUN}\b",
        rf"\b(?:el|la|este|esta) {_ES_NOUN} (?:dice|menciona|describe|explica|recomienda|sugiere)\b",
        rf"\b(?:este|esta|estos|estas) {_ES_NOUN}\b",
        rf"\b{_ES_NOUN} (?:anterior|de arriba|de abajo|proporcionad[oa]|dad[oa])\b",
        r"\b(?:mencionad|descrit|citad|indicad|mostrad)\w* (?:arriba|abajo|anteriormente|aquí|más arriba)",
        r"\b(?:arriba|antes) (?:mencionad|descrit|citad)\w*|\bsusodich\w*",
        r"\b(?:según|dice|afirma|explica|menciona) (?:el autor|la autora|los autores)\b|"
        r"\b(?:el autor|la autora|los autores) (?:dic|afirm|explic|mencion|recomiend)\w*",
    ),
    "it": (
        rf"\b(?:secondo|in base a|conformemente a) ?(?:il |lo |la |l'|l |al |alla |questo |questa )?"
        rf"{_IT_NOUN}(?: (?:fornit|dat|precedent|riportat)\w*)?{_LATIN_HALT}",
        r"\b(?:menzion|descritt|citat|indicat|presentat|spiegat|elencat|trattat)\w* "
        rf"(?:nel |nella |nell'|nello |dal |dalla |in questo |in questa ){_IT_NOUN}\b",
        r"\b(?:dice|menziona|descrive|spiega|indica|raccomanda|suggerisce|afferma) "
        rf"(?:il |lo |la |l'|questo |questa ){_IT_NOUN}\b",
        rf"\b(?:il |lo |la |l'){_IT_NOUN} (?:dice|menziona|descrive|spiega|raccomanda|suggerisce)\b",
        rf"\b(?:questo|questa|questi|queste) {_IT_NOUN}\b",
        rf"\b{_IT_NOUN} (?:precedente|qui sopra|qui sotto|fornit[oa]|dat[oa]|sopra|sotto)\b",
        r"\b(?:menzionat|descritt|citat|indicat|mostrat)\w* (?:sopra|sotto|qui|in precedenza)\b|"
        r"\bsopra(?:ccitat|menzionat|ddett)\w*|\bsuddett\w*|\bsopra (?:menzionat|citat|descritt)\w*",
        r"\b(?:secondo|dice|afferma|spiega) (?:l'autore|l'autrice|gli autori)\b|"
        r"\b(?:l'autore|gli autori) (?:dic|afferm|spieg|menzion)\w*",
    ),
    "pt": (
        rf"\b(?:segundo|de acordo com|conforme) (?:o|a|os|as|este|esta|esse|essa) {_PT_NOUN}"
        rf"(?: (?:fornecid|dad|acima|anterior|apresentad)\w*)?{_LATIN_HALT}",
        r"\b(?:mencionad|descrit|citad|indicad|apresentad|explicad|listad|abordad)\w* "
        rf"(?:no|na|nos|nas|pelo|pela|neste|nesta|nesse|nessa) {_PT_NOUN}\b",
        r"\b(?:diz|menciona|descreve|explica|indica|recomenda|sugere|afirma) "
        rf"(?:o|a|este|esta|esse|essa) {_PT_NOUN}\b",
        rf"\b(?:o|a|este|esta) {_PT_NOUN} (?:diz|menciona|descreve|explica|recomenda|sugere|afirma)\b",
        rf"\b(?:n?este|n?esta|n?esse|n?essa|deste|desta|desse|dessa) {_PT_NOUN}\b",
        rf"\b{_PT_NOUN} (?:acima|abaixo|anterior|fornecid[oa]|dad[oa])\b",
        r"\b(?:mencionad|descrit|citad|indicad|mostrad)\w* (?:acima|abaixo|anteriormente|aqui)\b|"
        r"\b(?:supracitad|acima mencionad)\w*",
        r"\b(?:segundo|diz|afirma|explica) (?:o autor|a autora|os autores)\b|"
        r"\b(?:o autor|a autora|os autores) (?:diz|dizem|afirm|explic|mencion)\w*",
    ),
    "nl": (
        rf"\b(?:volgens|op basis van|op grond van) (?:de|het|deze|dit) (?:\w+ )?{_NL_NOUN}"
        rf"{_LATIN_HALT}|\bvolgens (?:de|het|deze|dit) {_NL_NOUN}\b(?! ?\d)",
        rf"\bin (?:de|het|deze|dit) (?:\w+ )?{_NL_NOUN} (?:\w+ ){{0,3}}?(?:genoemd|vermeld|beschreven|"
        r"besproken|uitgelegd|aangegeven)",
        rf"\b(?:genoemd|vermeld|beschreven|besproken|uitgelegd) in (?:de|het|deze|dit) {_NL_NOUN}\b",
        rf"\b(?:zegt|vermeldt|beschrijft|noemt|stelt|adviseert) (?:de|het|deze|dit) {_NL_NOUN}\b",
        rf"\b(?:deze|dit) {_NL_NOUN}\b",
        rf"\b{_NL_NOUN} (?:hierboven|hieronder|boven|onder)(?=\s*(?:$|[?.,]))",
        r"\b(?:hierboven|hieronder)\b|\bboven(?:staand|genoemd|vermeld)\w*|\bonderstaand\w*",
        r"\b(?:volgens|zegt|zeggen|beschrijft) de (?:auteurs?|schrijvers?)\b",
    ),
    "ru": (
        rf"\b(?:согласно|исходя из|судя по|в соответствии с) (?:\w+(?:му|му|ого|ой|им) )?{_RU_NOUN}"
        rf"{_LATIN_HALT}|\b(?:согласно|исходя из) (?:этому|данному|приведённому|приведенному|этой|данной) "
        rf"{_RU_NOUN}\b",
        rf"\b(?:упомина|упомян|описа|описыва|указан|сказан|говорит|перечисл|приведен|приведён|изложен|"
        rf"рассматрива)\w* в (?:\w+ )?{_RU_NOUN}(?=\s*(?:$|[?.,]))",
        rf"\bв {_RU_NOUN} (?:\w+ ){{0,2}}?(?:упомина|упомян|описан|указан|сказан|говорит|перечисл|приведен)\w*",
        rf"\b(?:говорит|утверждает|сообщает|описывает|рекомендует)(?:ся)? (?:в )?(?:этом |этот |данный )?{_RU_NOUN}\b",
        rf"\b(?:этот|этом|этого|этому|данный|данном|данного|данной|этой|эта|приведённ\w+|приведенн\w+|"
        rf"предоставленн\w+) {_RU_NOUN}(?=\s|[?.,]|$)",
        r"\b(?:выше|ниже)(?:упомянут|указан|приведен|приведён|описан|изложен)\w*|"
        r"\b(?:упомянут|указан|приведен|приведён|описан|перечислен)\w* (?:выше|ниже)\b",
        r"\b(?:таблиц|пример|текст|рисунк|рисунок|список|списк)\w* (?:выше|ниже)\b",
        r"\b(?:по мнению|по словам|согласно) автор\w*|"
        r"\b(?:говорит|утверждает|считает|пишет|упоминает|рекомендует|предлагает) автор\w*|"
        r"\bавтор(?:ы|а)? (?:говор|утвержда|счита|пиш|упомина|рекоменду|предлага)\w*",
    ),
    "ar": (
        rf"(?:وفق[اً]*|حسب|بحسب|طبق[اً]*|استناد[اً]*|بناء[ً]?|بناءً)\s+(?:إلى |على )?(?:ال|لل|هذا ال|هذه ال|لهذا ال|لهذه ال)"
        rf"{_AR_NOUN}(?!\w)",
        rf"(?:هذا|هذه|لهذا|لهذه) ال{_AR_NOUN}(?!\w)",
        rf"(?:ذكر|ورد|يذكر|تذكر|المذكور|المذكورة|وصف|الموصوف|الموضح|الموضحة|الوارد|الواردة|ذكرها|ذكره|ذكرت|وردت)\s+"
        rf"(?:في )?ال{_AR_NOUN}(?!\w)",
        rf"(?:يقول|تقول|ينص|تنص|يشير|تشير|يصف|تصف)\s+ال{_AR_NOUN}(?!\w)",
        rf"ال{_AR_NOUN} (?:أعلاه|أدناه|السابق|السابقة|المعطى|المقدم)(?!\w)",
        r"(?:أعلاه|أدناه|آنف الذكر|سالف الذكر|المذكور سابق)",
        r"(?:يقول|يذكر|يرى|ذكر|حسب|وفقا لـ?) ?(?:المؤلف|الكاتب)(?!\w)",
    ),
    "zh": (
        rf"(?:根据|依据|按照|基于|参照)(?:本|该|此|这(?:段|篇|份|个|些)?|上述|以上|所给|给定|提供|所提供)?的?{_ZH_NOUN}"
        r"(?=$|[,\uff0c\u3001:\uff1a?\uff1f。]|中|里|所|的?(?:描述|说明|介绍|内容))",
        rf"(?:这(?:段|篇|份|个|张|一)|本(?:篇|段|节|章)|该(?:篇|段|节)?|上述|以上|以下|下面的?|上面的?|所给的?|给定的?|提供的)"
        rf"{_ZH_NOUN}(?=$|[,\uff0c\u3001?\uff1f]|中|里|所|提|说|讲|介|描|认|指|主|是|有|的)",
        r"(?<![\u4e00-\u9fff])(?:本文|文中|原文|上文|下文|前文)(?!件|档|本|字)|"
        r"(?:文中|本文|上文|原文|文章中?|文档中?|段落中?)(?:所)?(?:提到|提及|所述|描述|说到|指出|介绍|认为)",
        r"上述(?!语句)|如(?:上|下)(?:所述|所示|图|表)|(?:上|下)表(?:中|所示|里)|前面提到|上面提到",
        r"作者(?:认为|指出|提到|说|提出|建议|的观点)",
    ),
    "ja": (
        rf"(?:この|上記の?|以下の|下記の?|前述の|上の|次の|与えられた|提供された|当該){_JA_NOUN}"
        r"(?=$|[、。?\uff1f]|に|の|で|は|が|を|から|によ|内|中)(?!の(?:書|作|追加|削除))",
        r"(?:本文|文章|文書|テキスト|文中|記事|資料|ドキュメント|パッセージ|抜粋)(?:中)?(?:によると|によれば|に基づ|で述べ|で言及|"
        r"では何|に書かれて|に記載され|で説明され|で紹介され)",
        r"上記|下記|前述|上述|先述",
        r"(?:著者|筆者|作者)(?:は|によ|が述べ|の主張)",
    ),
}
