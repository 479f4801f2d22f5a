"""The codes under which rules turn candidates away, and what many of one code mean."""

from typing import Final, Literal, get_args

Code = Literal[
    "schema",
    "question_length",
    "answer_length",
    "hidden_characters",
    "preamble",
    "question_form",
    "no_answer",
    "answer_not_absent",
    "language",
    "deictic",
    "order_followed",
    "quote_empty",
    "quote_too_long",
    "quote_not_found",
    "quote_too_short",
    "answer_in_question",
    "copied",
    "duplicate",
    "near_duplicate",
]
"""In the order in which they are looked for."""

CODES: Final[tuple[Code, ...]] = get_args(Code)

MEANINGS: Final[dict[Code, str]] = {
    "schema": "a part that its type needs is missing or does not fit; where many, the model does "
    "not hold the form: try another, or ask for fewer types",
    "question_length": "too short to ask, or too long for a user to type; where many, the model "
    "rambles, or the prompt asks for too much at once",
    "answer_length": "longer than an answer of its type; where many, ask for shorter answers",
    "hidden_characters": "control, bidi or other characters that nobody sees; where many, clean "
    "the documents they come from",
    "preamble": "talk around the item, leftovers of its format or of instructions; where many, a "
    "weak model, or documents that give orders",
    "question_form": "no form of its type, such as a keyword query with a question mark; where "
    "many, lower the share of that type",
    "no_answer": "its answer only says that there is none; where many, chunks say too little: "
    "make them larger",
    "answer_not_absent": "an unanswerable question with an answer that does not say what is "
    "missing; where many, the model answers what it was to leave open: try another",
    "language": "written in another language than planned; where many, check the languages of the "
    "settings, or the model does not master one",
    "deictic": "points at a text that its reader does not see; where many, the prompt lets the "
    "model speak of its passage",
    "order_followed": "quotes an order of a document to its reader, or asks what it dictates; "
    "where many, look at these documents before you use them",
    "quote_empty": "a quote without a word or number that says something; where many, the "
    "model is too weak to select",
    "quote_too_long": "quotes (nearly) the whole chunk, which proves no place; where many, chunks "
    "are too small or the model does not select",
    "quote_not_found": "a quote does not stand in its passage word for word; where many, the model "
    "paraphrases: lower its temperature, or use a larger one",
    "quote_too_short": "quotes one word or a heading alone, which proves nothing; where many, the "
    "model names where to look and does not quote: try another",
    "answer_in_question": "the question says its own answer; where many, the model is too weak "
    "to ask without telling",
    "copied": "the question repeats a run of words of the text, which flatters lexical retrievers; "
    "where many, lower the share of easy ones or use a larger model",
    "duplicate": "asked already; where many, more is asked for than the documents carry",
    "near_duplicate": "nearly asked already; where many, more is asked for than the documents "
    "carry, or they repeat each other",
}
"""One sentence for each code."""
