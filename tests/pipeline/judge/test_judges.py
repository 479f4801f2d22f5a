import pytest

from ragforge.pipeline.judge.judges import family_of, of_member, shared_families


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-5-mini", "OpenAI"),
        ("openai/o3", "OpenAI"),
        ("claude-sonnet-5", "Anthropic"),
        ("google/gemma-3-27b-it", "Google"),
        ("meta-llama/Llama-3.3-70B-Instruct", "Meta"),
        ("qwen3", "Alibaba"),
        ("mixtral-8x22b", "Mistral"),
        ("deepseek-v3", "DeepSeek"),
        ("deepseek-r1-distill-llama-70b", "Meta"),
        ("phi-4", "Microsoft"),
        ("local:SmolLM2-135M.gguf", "Hugging Face"),
        ("our-own-7b", ""),
    ],
)
def test_the_family_is_told_from_the_name(model, family):
    """Kin err alike: a panel of them is one judge that is paid several times."""
    assert family_of(model) == family


def test_kin_are_named_once():
    """Two unknown models are not known to be kin."""
    assert shared_families(["gpt-5", "gpt-4o", "o3", "qwen3", "mine", "yours"]) == ["OpenAI"]


def test_a_member_of_a_panel_at_another_address_is_another_endpoint(settings_for):
    """The name that the user gave is that of the base URL; whoever answers elsewhere is another."""
    settings = settings_for("http://127.0.0.1:9/v1", endpoint_id="prod")

    here = of_member(settings, "mine")
    there = of_member(settings, "mine@http://127.0.0.1:10/v1")

    assert (here.model.endpoint_id, there.model.endpoint_id) == ("prod", "")
