import pytest

from ragforge.stages.answer.refusals import abstains, speaks_of_absence

# ruff: noqa: RUF001 -- letters of one script look like those of another; these are meant.


REFUSALS = {
    "en": (
        "I don't know.",
        "I don\u2019t know the answer to that.",
        "Sorry, I could not find this in the documents.",
        "I'm sorry, but I don't have enough information to answer this question.",
        "I cannot answer this question based on the provided context.",
        "We were unable to determine the cause.",
        "The documents do not contain information about pricing.",
        "The provided context doesn't mention a deadline.",
        "Unfortunately, the retrieved passages contain no information on this.",
        "There is no information about this in the passages.",
        "This is not mentioned in the text.",
        "Based on the provided documents, I cannot determine the price.",
        "I don't know. Please contact support.",
        "Not specified.",
        "Unknown",
        "**I don't know.**",
        "The answer cannot be found in the given context.",
        "The information could not be found in the provided passages.",
        "Unfortunately, the question cannot be answered based on the provided context.",
        "Cannot be answered from the documents.",
        "Not in the documents.",
        "Insufficient information to answer the question.",
    ),
    "de": (
        "Das kann ich nicht sagen.",
        "Das weiß ich nicht.",
        "Ich weiß es leider nicht.",
        "Leider kann ich diese Frage nicht beantworten.",
        "Die Frage kann ich nicht beantworten.",
        "Dazu habe ich keine Informationen.",
        "Die Dokumente enthalten keine Informationen dazu.",
        "Keine Angabe",
        "Das steht nicht in den Dokumenten.",
        "Das ist nicht bekannt.",
    ),
    "fr": (
        "Le contexte ne contient pas cette information.",
        "Je ne sais pas.",
        "Désolé, je ne trouve pas la réponse dans les documents.",
        "Le document ne mentionne pas cette information.",
        "Les textes ne contiennent aucune information à ce sujet.",
    ),
    "es": (
        "El contexto no contiene esa información.",
        "No lo sé.",
        "No puedo responder a esa pregunta.",
        "Lo siento, no tengo información sobre eso.",
        "El documento no menciona la fecha.",
    ),
    "it": (
        "Non lo so.",
        "Mi dispiace, non posso rispondere a questa domanda.",
        "Il documento non contiene informazioni su questo.",
    ),
    "pt": (
        "Não sei.",
        "Não encontrei nenhuma informação sobre isso.",
        "O documento não menciona o prazo.",
    ),
    "nl": (
        "Dat weet ik niet.",
        "Ik weet het niet.",
        "De documenten bevatten geen informatie hierover.",
    ),
    "pl": ("Nie wiem.", "Nie mam informacji na ten temat.", "Dokumenty nie zawierają informacji."),
    "sv": ("Jag vet inte.", "Det finns ingen information om detta."),
    "tr": ("Bilmiyorum.", "İlgili bilgi bulunamadı.", "Bu konuda bilgi bulunmamaktadır."),
    "ru": (
        "Я не знаю.",
        "К сожалению, я не могу ответить на этот вопрос.",
        "В документах об этом не сказано.",
    ),
    "zh": ("我不知道。", "抱歉,我无法回答这个问题。", "提供的文档中没有提到相关信息。"),
    "ja": (
        "この質問には答えられません。",
        "わかりません。",
        "申し訳ありませんが、この質問にはお答えできません。",
        "文書には記載がありません。",
        "回答できません。",
    ),
    "ko": (
        "모르겠습니다.",
        "죄송합니다. 이 질문에 답변할 수 없습니다.",
        "관련 정보를 찾을 수 없습니다.",
    ),
}


@pytest.mark.parametrize(
    "answer", [text for texts in REFUSALS.values() for text in texts] + ["", " \n"]
)
def test_an_answer_that_says_nothing_is_an_abstention(answer):
    """It is right where nothing can be said, and wrong in another way than a false claim."""
    assert abstains(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "Blue whales eat krill.",
        "Water damage is not covered.",
        "The warranty does not cover water damage.",
        "The policy document does not cover water damage.",
        "The document does not contain images.",
        "Refunds are not available after 30 days.",
        "The package does not contain nuts.",
        "No information is stored on disk.",
        "Users can't answer calls while the line is busy.",
        "It is known in every country.",
        "You cannot find it in the settings; use the command line.",
        "I don't know of any limit below 5.",
        "I don't know of any limit.",
        "I cannot say that it is safe.",
        "I don't know, but it is krill.",
        "I don't know for sure, however the manual says krill.",
        "I don't know. It is krill.",
        "I could not find any limit.",
        "We cannot tell who opened the file.",
        "The documents do not mention the year 1889.",
        "Not available on Windows.",
        "Unknown hosts are refused.",
        "...",
        "The documents provide no information on pricing, it costs five dollars.",
        "The text does not mention Bob; Alice did it.",
        "There is no information disclosure vulnerability.",
        "There is no evidence of fraud.",
        "It was found in the documents.",
        "This is not provided in the available plans.",
        "Unknown error",
        "The refund cannot be determined.",
        "The answer cannot be given before Friday.",
        "Not in the cellar.",
        "Insufficient data is logged as E7.",
        "Je ne sais pas nager.",
        "Die Unterlagen nennen nichts Genaues, wohl fünf.",
        "I don't know for sure, and " + "the manual says a lot about it " * 10,
        "Keine Angaben zur Person werden gespeichert.",
        "Das weiß ich nicht, aber es sind fünf.",
        "Die Garantie deckt keine Wasserschäden.",
        "Le document ne contient pas d'images.",
        "Je ne sais pas, mais c'est le krill.",
        "La garantía no cubre los daños por agua.",
        "El documento no contiene imágenes.",
        "Il pacchetto non contiene noci.",
        "O documento não contém imagens.",
        "De garantie dekt geen waterschade.",
        "Nie wiem, ale to kryl.",
        "Не знаю, но это криль.",
        "文件不包含图片。",
        "保证不包括水损。",
        "保証は水害を対象としません。",
        "보증은 침수를 보장하지 않습니다.",
    ],
)
def test_an_answer_that_says_something_is_none(answer):
    """A rule that takes a right answer for an abstention hides it from the judge."""
    assert not abstains(answer)


def test_a_number_of_the_question_may_be_said_again():
    """Systems repeat what they were asked; only other numbers are statements."""
    assert abstains("The documents do not mention revenue in 2023.", "What was earned in 2023?")


def test_a_long_text_is_decided_at_once():
    """A pattern that takes exponential time would let one answer stop a run."""
    assert not abstains("the document " * 20 + "does not " * 200)


@pytest.mark.parametrize(
    "text",
    [
        "It is unknown.",
        "The policy doesn\u2019t say.",
        "NOBODY knows.",
        "There is a lack of data.",
        "The manual is silent on this.",
        "Das ist unbekannt.",
        "Es gibt keine Angaben.",
        "Personne ne le sait.",
        "Nadie lo sabe.",
        "\u041d\u0435\u0438\u0437\u0432\u0435\u0441\u0442\u043d\u043e.",
        "\u6ca1\u6709\u8bf4\u660e\u3002",
        "\u8a18\u8f09\u304c\u3042\u308a\u307e\u305b\u3093\u3002",
        "\uc54c \uc218 \uc5c6\uc2b5\ub2c8\ub2e4.",
        "We were unable to determine the cause.",
        "Bu konuda bilgi bulunmamaktad\u0131r.",
        "Bu soruyu yan\u0131tlayam\u0131yorum.",
        "\u3054\u8cea\u554f\u306b\u306f\u304a\u7b54\u3048\u3044\u305f\u3057\u304b\u306d\u307e\u3059\u3002",
    ],
)
def test_what_is_not_is_noticed_in_many_languages(text):
    """An abstention can be the right answer to such a question."""
    assert speaks_of_absence(text)


@pytest.mark.parametrize(
    "text",
    [
        "krill",
        "A fee of ten percent.",
        "On the nose of the knight.",
        "Ten note cards.",
        "",
        "Ofis Ankara'da bulunmaktad\u0131r.",
        "\u00dccret s\u00f6zle\u015fmede belirtilmi\u015ftir.",
    ],
)
def test_most_answers_say_what_is(text):
    """Else no abstention would be decided without a call."""
    assert not speaks_of_absence(text)
