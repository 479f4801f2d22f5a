import pytest
from pydantic.fields import FieldInfo

from ragforge.api.about import settings_toml
from ragforge.config import Setting, Settings, each_setting, load
from ragforge.config.services import BUILT_IN as SERVICE_NAMES_TAKEN
from ragforge.errors import ConfigError
from ragforge.files.shipped_folders import shipped
from ragforge.retrieval.retrievers import BUILT_IN


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def file(here):
    """Write a settings file."""

    def write(text, name="my.toml"):
        path = here / name
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    ("in_file", "variables", "flags", "n"),
    [
        ("", {}, {}, 20),
        ("generate.n = 1", {}, {}, 1),
        ("generate.n = 1", {"RAGFORGE_GENERATE_N": "2"}, {}, 2),
        ("generate.n = 1", {"RAGFORGE_GENERATE_N": "2"}, {"generate.n": 3}, 3),
        ("", {"RAGFORGE_GENERATE_N": "2"}, {"generate.n": 3}, 3),
        ("generate.n = 1", {}, {"generate.n": 3}, 3),
    ],
)
def test_flags_go_before_environment_before_file_before_default(file, in_file, variables, flags, n):
    """A user must be able to tell which value is in force."""
    assert load(file(in_file), flags, variables).generate.n == n


def test_sources_are_merged_field_by_field(file):
    """A flag for one field must not reset its neighbours."""
    path = file("[model]\nname = 'm'\nseed = 5")

    settings = load(path, {"model.seed": 6}, {"RAGFORGE_MODEL_TEMPERATURE": "0.5"})

    assert (settings.model.name, settings.model.seed, settings.model.temperature) == ("m", 6, 0.5)


def test_the_file_of_the_working_directory_is_read(file):
    """A project keeps its settings beside its data."""
    file("generate.n = 7", "ragforge.toml")

    assert load(environment={}).generate.n == 7


def test_a_named_file_replaces_the_one_of_the_working_directory(file):
    """Two files that add up would be hard to understand."""
    file("generate.n = 7\nretrieve.k = 3", "ragforge.toml")

    settings = load(file("generate.n = 8"), environment={})

    assert (settings.generate.n, settings.retrieve.k) == (8, 10)


def test_without_any_source_the_defaults_hold():
    """The first run needs no set-up."""
    assert load(environment={}) == Settings()


def test_measures_may_stand_in_one_word():
    """That of a panel may; "cutoff: expected a whole number, got '10,RR'" said nothing of it."""
    found = Settings(evaluate={"measures": ["nDCG@10, RR", "P(rel=2)@5"]})

    assert found.evaluate.measures == ("nDCG@10", "RR", "P(rel=2)@5")


def test_lists_in_the_environment_are_separated_by_commas():
    """A variable can hold nothing else."""
    variables = {"RAGFORGE_EVALUATE_MEASURES": "nDCG@10, RR,"}

    assert load(environment=variables).evaluate.measures == ("nDCG@10", "RR")


def test_the_process_environment_is_read(monkeypatch):
    """It is the way of containers."""
    monkeypatch.setenv("RAGFORGE_GENERATE_N", "4")

    assert load().generate.n == 4


def test_a_misspelt_variable_is_refused():
    """Read past, a set would be made or judged by a default."""
    with pytest.raises(ConfigError, match="did you mean RAGFORGE_MODEL_NAME"):
        load(environment={"RAGFORGE_MODEL_NAMES": "m"})


def test_a_variable_that_a_setting_names_is_none_of_ours():
    """A key may be kept under any name."""
    variables = {"RAGFORGE_MODEL_KEY": "k", "RAGFORGE_MODEL_API_KEY_ENV": "RAGFORGE_MODEL_KEY"}

    assert load(environment=variables).model.api_key_env == "RAGFORGE_MODEL_KEY"
    assert load(environment={"RAGFORGE_SYSTEMS_TOKEN": "t"}) == Settings()


def test_a_byte_order_mark_is_no_part_of_the_file(here):
    """Editors on Windows write it."""
    path = here / "my.toml"
    path.write_bytes(b"\xef\xbb\xbfgenerate.n = 4")

    assert load(path, environment={}).generate.n == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "model.tempreature = 1",
            r"my\.toml: unknown key model\.tempreature; did you mean "
            r"model\.temperature\?",
        ),
        ("modle.seed = 1", r"my\.toml: unknown section modle; did you mean model\?"),
        ("[generat]", r"unknown section generat; did you mean generate\?"),
        ("seed = 1", r"unknown section seed; did you mean "),
        ("model = 1", r"my\.toml: model: expected a section in brackets, got 1"),
        ("generate.n = ", r"my\.toml: is not TOML: "),
        ("generate.n = 1\ngenerate.n = 2", r"my\.toml: is not TOML: "),
    ],
)
def test_a_file_that_cannot_be_taken_is_named_with_the_remedy(file, text, message):
    """A setting that is silently ignored costs a paid run."""
    with pytest.raises(ConfigError, match=message):
        load(file(text), environment={})


@pytest.mark.parametrize(
    ("in_file", "variables", "flags", "message"),
    [
        ("generate.n = 0", {}, {}, r"my\.toml: generate\.n: .*greater than 0, got 0"),
        ("", {"RAGFORGE_GENERATE_N": "many"}, {}, "^RAGFORGE_GENERATE_N: generate.n: .*'many'"),
        ("", {}, {"generate.n": -1}, r"^--n: generate\.n: .*got -1"),
        ("", {}, {"model.name": ""}, r"^--model: model\.name: .*at least 1 character"),
        ("", {}, {"model.timeout_s": "nan"}, r"^--timeout-s: model\.timeout_s: "),
        ("", {}, {"model.timeout_s": "inf"}, r"^--timeout-s: model\.timeout_s: "),
        ("", {}, {"model.temperature": 3}, "^--temperature: .*less than or equal to 2"),
        ("", {}, {"evaluate.rel_threshold": "high"}, r"^--rel-threshold: evaluate\.rel_threshold"),
        (
            "generate.n = 0",
            {"RAGFORGE_GENERATE_N": "0"},
            {},
            r"^RAGFORGE_GENERATE_N: generate\.n: ",
        ),
        ("model.name.x = 1", {}, {}, r"my\.toml: model\.name: .*valid string"),
    ],
)
def test_a_wrong_value_names_its_origin_and_what_is_allowed(
    file, in_file, variables, flags, message
):
    """With four sources a user has to know which one to mend."""
    with pytest.raises(ConfigError, match=message):
        load(file(in_file), flags, variables)


def test_a_missing_file_is_an_error(here):
    """A file that was asked for by name must not be skipped."""
    with pytest.raises(ConfigError, match=r"my\.toml: cannot be read: No such file"):
        load(here / "my.toml", environment={})


def test_a_file_in_another_encoding_is_an_error(here):
    """Guessing would turn a prompt folder's name into another."""
    path = here / "my.toml"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        load(path, environment={})


def test_the_shipped_file_equals_the_defaults():
    """It is where users look up what can be set."""
    text = (shipped("configs") / "default.toml").read_text(encoding="utf-8")

    assert text == settings_toml(Settings().model_dump(mode="json"))


def test_the_shipped_file_is_a_settings_file():
    """Users copy it and change a line."""
    assert load(shipped("configs") / "default.toml", environment={}) == Settings()


NEED_TRUST = {
    "model.name",
    "model.base_url",
    "model.endpoint_id",
    "model.api_key_env",
    "model.embedding_model",
    "model.extra_body",
    "model.proxy",
    "budget.input_usd_per_mtok",
    "budget.output_usd_per_mtok",
    "chunk.chunker",
    "chunk.follow_links",
    "chunk.source_code",
    "generate.personas",
    "generate.like",
    "generate.checker",
    "judge.panel",
    "judge.examples",
    "refresh.dataset",
    "refresh.documents",
    "refresh.keep",
    "refresh.notify_command",
    "refresh.notify_url",
    "prompts.prompts_dir",
}
HARMLESS = {
    *(f"model.{name}" for name in ("temperature", "seed", "max_output_tokens", "timeout_s")),
    "model.offline_model",
    *(f"model.{name}" for name in ("max_attempts", "max_wait_s", "concurrency", "transport")),
    *(f"model.{name}" for name in ("requests_per_minute", "tokens_per_minute")),
    *(f"budget.{name}" for name in ("max_calls", "max_tokens", "max_cost_usd")),
    *(f"chunk.{name}" for name in ("max_chars", "include", "exclude")),
    *(f"generate.{name}" for name in ("n", "language", "types", "difficulties", "per_call")),
    *(f"generate.{name}" for name in ("per_chunk", "checks", "complete", "licence", "dev_share")),
    *(f"pool.{name}" for name in ("pool_k", "pool_most", "pool_batch", "pool_model")),
    "retrieve.k",
    *(f"judge.{name}" for name in ("depth", "prompt", "batch", "permutations", "votes")),
    *(f"judge.{name}" for name in ("logprobs", "split")),
    *(f"evaluate.{name}" for name in ("measures", "rel_threshold")),
    *(f"refresh.{name}" for name in ("max_new", "at_least", "vanished_most", "churn_most")),
    *(f"refresh.{name}" for name in ("chunks_gone_most", "accepted_least", "holes_most")),
    *(f"refresh.{name}" for name in ("precision_least", "unanswerable_most", "similar_least")),
    "refresh.near_chars",
    "refresh.other_judge",
}


def test_every_setting_is_known_to_need_trust_or_to_be_harmless():
    """Whoever adds one has to decide whether a file that came with a folder may set it."""
    needing = {setting.key for setting in each_setting() if setting.needs_trust("module:attr")}

    assert needing == NEED_TRUST
    assert {setting.key for setting in each_setting()} - needing == HARMLESS


def test_a_setting_that_nobody_marked_needs_trust():
    """To forget the decision must be safe."""
    unmarked = Setting("model", "new", "new", "NEW", FieldInfo(annotation=str, default=""))

    assert unmarked.needs_trust("anything")


def test_installed_chunkers_need_no_trust():
    """What the user installed is the user's choice; a module of the folder is not."""
    [chunker] = [setting for setting in each_setting() if setting.key == "chunk.chunker"]

    assert not chunker.needs_trust("neat")
    assert chunker.needs_trust("neat:chunk")


def test_no_two_settings_share_a_flag_or_variable():
    """One of them could never be set."""
    settings = list(each_setting())

    assert len({setting.flag for setting in settings}) == len(settings)
    assert len({setting.environment for setting in settings}) == len(settings)


@pytest.mark.parametrize("setting", list(each_setting()), ids=lambda setting: setting.key)
def test_every_setting_has_a_sentence(setting):
    """It is its help, its schema and its line in the default file."""
    assert setting.text.endswith(".")


def test_no_setting_holds_a_secret():
    """Settings are printed, hashed and stored."""
    names = {setting.field for setting in each_setting()}

    assert not names & {"api_key", "key", "token", "password"}


def test_a_password_in_the_address_is_refused_and_not_repeated():
    """The address goes into call keys, manifests and messages; a secret in it would too."""
    with pytest.raises(ConfigError, match="no user name or password") as raised:
        load(flags={"model.base_url": "https://me:hunter2@example.org/v1"}, environment={})

    assert "hunter2" not in str(raised.value)


def test_true_is_no_number(tmp_path):
    """TOML's true would pass for 1 and generate a single query."""
    path = tmp_path / "ragforge.toml"
    path.write_text("[generate]\nn = true\n", encoding="utf-8")

    with pytest.raises(ConfigError, match=r"generate\.n: no setting takes true or false"):
        load(path, environment={})


def test_printed_settings_do_not_hold_the_key_of_a_hook():
    """What is printed is pasted into reports of faults."""
    values = Settings().model_dump(mode="json")
    values["refresh"]["notify_url"] = "https://chat.example/hooks/KEY"

    printed = settings_toml(values)

    assert '# notify_url = "https://chat.example/…"' in printed
    assert "# Not shown in full" in printed
    assert "hooks/KEY" not in printed


SERVICE = """
[retrievers.docs]
url = "https://search.example/v1"
body = { q = "{query}", deep = { yes = true, list = [1, 2] } }
headers = { Authorization = "Bearer ${TOKEN}" }
"""


def test_a_service_is_described_in_a_table_of_its_own(file):
    """Headers and bodies of any shape fit into no single setting."""
    service = load(file(SERVICE), environment={}).retrievers["docs"]

    assert service.url == "https://search.example/v1"
    assert service.body == {"q": "{query}", "deep": {"yes": True, "list": [1, 2]}}


def test_printed_settings_can_be_read_again_with_their_services(file):
    """`ragforge config` is how settings are moved elsewhere."""
    settings = load(file(SERVICE), environment={})

    again = load(
        file(settings_toml(settings.model_dump(mode="json")), "again.toml"), environment={}
    )

    assert again == settings


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Bearer ${TOKEN}", "Bearer hunter2", "a secret in Authorization, which does not belong"),
        ("/v1", "/v1?api_key=hunter2", "a secret in api_key, which does not belong into a file"),
        ("{ q", '{ to = [{ apiKey = "hunter22" }], q', "a secret in apiKey"),
        ("body =", """body = '{"q": "{query}", "password": "hunter22"}' #""", "in password"),
        ("https://", "https://me:hunter2@", "no user name or password in the address"),
        ("https://", "ftp://hunter2.", "expected an address such as https://search.example/api"),
        ("headers =", "hedaers =", r"unknown key retrievers\.docs\.hedaers; did you mean headers"),
        ("docs]", "bm25]", r"retrievers\.bm25: there is a retriever of that name already"),
        ("docs]", "'a:b']", r"retrievers\.a:b: expected letters, digits, - and _"),
        ("url =", 'method = "GET"\nurl =', "a GET has no body; params go with it"),
        ("url =", 'dialect = "openai-chat"\nurl =', "openai-chat is one of systems"),
        ("retrievers.docs]", "systems.docs]\ndialect = 'qdrant'", "qdrant is one of retrievers"),
        ("url =", "# url =", r"retrievers\.docs: expected a url"),
        ("url =", "timeout_s = 0\nurl =", r"retrievers\.docs\.timeout_s: .*greater than 0"),
        ("[retrievers.docs]", "[retrievers]\ndocs = 1\n[x]", r"docs: expected a section"),
    ],
)
def test_a_service_that_cannot_be_taken_is_named_without_its_secrets(file, old, new, message):
    """A message lands in a log."""
    with pytest.raises(ConfigError, match=message) as caught:
        load(file(SERVICE.replace(old, new, 1)), environment={})

    assert "hunter2" not in str(caught.value)


def test_a_body_may_say_what_only_sounds_like_a_secret(file):
    """Engines have tokenizers, and limits of tokens."""
    own = 'max_tokens = 500, tokenizer = "whitespace", stop_token = "<|endoftext|>"'
    body = f'{{ q = "{{query}}", {own}, api_key = "${{KEY}}" }}'

    service = load(file(f"[systems.a]\nurl = 'http://a'\nbody = {body}"), environment={})

    assert service.systems["a"].body["tokenizer"] == "whitespace"


def test_names_of_retrievers_that_are_there_are_no_names_of_services():
    """One of the two could never be asked."""
    assert {name for name in BUILT_IN if not name.endswith("URL")} == SERVICE_NAMES_TAKEN


def test_the_shipped_services_are_a_settings_file():
    """Users copy one and change a line; each can be asked once its variables are set."""
    settings = load(shipped("configs") / "services.toml", environment={})

    assert {service.dialect for service in settings.retrievers.values()} == {
        "ragforge",
        "elasticsearch",
        "opensearch",
        "qdrant",
        "weaviate",
    }
    assert {service.dialect for service in settings.systems.values()} == {
        "ragforge",
        "openai-chat",
    }
