"""The maker of a model, by its name: models of one maker make the same mistakes."""

import re
from collections import Counter
from collections.abc import Iterable

_FAMILIES = (
    ("OpenAI", r"gpt|chatgpt|davinci|\bo[1-9]\b"),
    ("Anthropic", r"claude"),
    ("Google", r"gemini|gemma|palm"),
    ("Meta", r"llama"),
    ("Alibaba", r"qwen|qwq"),
    ("Mistral", r"mistral|mixtral|ministral|magistral|codestral|devstral"),
    ("DeepSeek", r"deepseek"),
    ("Microsoft", r"\bphi\b|phi-?[1-9]|wizardlm"),
    ("Cohere", r"command|\baya\b"),
    ("xAI", r"grok"),
    ("Z.ai", r"\bglm\b|chatglm"),
    ("Moonshot", r"kimi|moonshot"),
    ("MiniMax", r"minimax"),
    ("NVIDIA", r"nemotron"),
    ("IBM", r"granite"),
    ("AI21", r"jamba"),
    ("Amazon", r"nova|titan"),
    ("Hugging Face", r"smollm|zephyr"),
    ("TII", r"falcon"),
    ("01.AI", r"\byi\b"),
)


def family_of(model: str) -> str:
    """Return the maker's name, "" where the model's name tells none.

    A distillate named after two makers belongs to the one whose weights it has, as far as names
    tell: `deepseek-r1-distill-llama-70b` is a llama.
    """
    name = model.rsplit("/", 1)[-1].lower()
    name = name.partition("distill")[2] or name
    return next((maker for maker, words in _FAMILIES if re.search(words, name)), "")


def shared_families(models: Iterable[str]) -> list[str]:
    """Return the makers that several of the models come from, sorted."""
    counts = Counter(family for family in map(family_of, models) if family)
    return sorted(family for family, count in counts.items() if count > 1)
