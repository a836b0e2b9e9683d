from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_cli.core.settings import read_settings_file, user_file
from rl_cli.core.settings_edit import set_setting
from rl_cli.core.settings_layers import leaves
from tests.e2e.cli import rl_cli


def test_show_says_what_holds_and_where_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "rl-cli.yaml").write_text("model: scripted/x.yaml\n")
    shown = json.loads(rl_cli("config", "show", "--json", cwd=tmp_path).out)
    assert (shown["model"], shown["seed"], shown["environments_dir"]) == ("scripted/x.yaml", None, "my_envs")
    origins = json.loads(rl_cli("config", "show", "--origin", "--json", cwd=tmp_path, RL_CLI_SEED="7").out)
    assert origins["model"]["origin"] == str(tmp_path / "rl-cli.yaml")
    assert origins["seed"] == {"value": 7, "origin": "environment variable RL_CLI_SEED"}
    assert origins["home"]["origin"] == "environment variable RL_CLI_HOME"
    text = rl_cli("config", "show", "--origin", cwd=tmp_path).out
    assert "scripted/x.yaml" in text
    assert "default" in text


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"model: a/b\nseed: 3\n", 0, "good settings (model, seed)"),
        (b"", 0, "none set"),
        (b"modle: a/b\n", 2, "did you mean model?"),
        (b"approvals: [{tool: rl_start_*, do: ask}]\n", 0, "good settings (approvals)"),
        (b"approvals: [{tool: rl_start, do: deny}]\n", 2, "did you mean rl_start_training"),
        (b"approvals: [{tool: rl_stop_*, arguments: {runid: x}, do: deny}]\n", 2, "did you mean run_id"),
        (b"seed: x\n", 2, "'seed' must be a whole number"),
        (b"model: {\n", 2, "not valid YAML"),
        (b"\xff\xfe\x00", 2, "not UTF-8"),
        (b"grpo: " + b"[" * 5000, 2, "nested more than"),
        (b"environment: {name: gsm8k-mini}\ngrpo: {stps: 3}\n", 2, "steps"),
        (b"environment: {name: gsm8k-mini}\ngrpo: {steps: 3}\n", 0, "learns gsm8k-mini"),
    ],
)
def test_check_reads_settings_and_configs_of_runs(
    tmp_path: Path, content: bytes, code: int, words: str
) -> None:
    path = tmp_path / "some.yaml"
    path.write_bytes(content)
    outcome = rl_cli("config", "check", str(path))
    assert outcome.code == code, outcome
    said = outcome.out if code == 0 else outcome.err
    assert words in said
    assert str(path) in said
    assert said.count("\n") == 1


def test_a_wrong_settings_file_stops_every_command_that_reads_it(tmp_path: Path) -> None:
    (tmp_path / "rl-cli.yaml").write_text("modle: x\n")
    for words in (["config", "show"], ["ask", "list the environments"]):
        outcome = rl_cli(*words, cwd=tmp_path)
        assert outcome.code == 2
        assert "rl-cli.yaml" in outcome.err


def test_what_a_folder_loosens_holds_after_trust_and_until_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "rl-cli.yaml"
    file.write_text("budgets: {day: {dollars: 5}}\napprovals: [{tool: rl_*, do: allow}]\n")

    def refused() -> bool:
        outcome = rl_cli("ask", "list the environments", cwd=tmp_path)
        assert outcome.code in (0, 2), outcome
        assert (outcome.code == 2) == ("rl-cli config trust" in outcome.err)
        return outcome.code == 2

    assert refused()
    said = rl_cli("config", "trust", cwd=tmp_path).out
    assert "approvals (allow rl_*)" in said
    assert "budgets" not in said
    assert not refused()
    shown = json.loads(rl_cli("config", "show", "--origin", "--json", cwd=tmp_path).out)
    assert shown["approvals.0"] == {"value": {"tool": "rl_*", "do": "allow"}, "origin": str(file)}
    assert shown["budgets.day.dollars"]["value"] == 5
    assert rl_cli("config", "trust", "--revoke", cwd=tmp_path).out.endswith("is no longer trusted\n")
    assert refused()
    rl_cli("config", "trust", cwd=tmp_path)
    file.write_text(file.read_text() + "allow_unknown_prices: true\n")
    assert refused()
    file.write_text("seed: 3\n")
    assert not refused()
    assert "needs no trust" in rl_cli("config", "trust", cwd=tmp_path).out
    assert rl_cli("config", "trust", cwd=tmp_path / "..").code == 2


def test_trust_checks_the_file_first(tmp_path: Path) -> None:
    (tmp_path / "rl-cli.yaml").write_text("approvals: [{tool: x, do: allwo}]\n")
    outcome = rl_cli("config", "trust", cwd=tmp_path)
    assert outcome.code == 2
    assert "approvals.0.do" in outcome.err


HAND_WRITTEN = """\
# mine
model: openai/a   # the model
budgets:
    day:          # every day
        dollars: 5
    # after the day
endpoints: {vllm: {base_url: "http://x/v1"}}  # served
approvals:
- {tool: a, do: deny}   # never
# the end
"""


PRICED = "prices: {models: {a/b-1.5: {input: 1, output: 2}}}"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("model", "openai/b", ("model: openai/a ", "model: openai/b ")),
        ("budgets.day.dollars", "7.5", ("dollars: 5", "dollars: 7.5")),
        ("budgets.day.tokens", "100", ("dollars: 5\n", "dollars: 5\n        tokens: 100\n")),
        ("endpoints.vllm.window", "10", ('"http://x/v1"}', '"http://x/v1", window: 10}')),
        ("endpoints.v.2.window", "10", ('/v1"}}', '/v1"}, v.2: {window: 10}}')),
        ("seed", "3", ("# never", "# never\nseed: 3")),
        ("prices.models.a/b-1.5", "{input: 1, output: 2}", ("# never", f"# never\n{PRICED}")),
    ],
)
def test_set_changes_one_value_and_keeps_the_rest(
    tmp_path: Path, key: str, value: str, expected: tuple[str, str]
) -> None:
    file = tmp_path / "config" / "rl-cli" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(HAND_WRITTEN)
    outcome = rl_cli("config", "set", key, value, cwd=tmp_path)
    assert outcome.code == 0, outcome
    assert file.read_text() == HAND_WRITTEN.replace(*expected)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("modle", "x", "did you mean model?"),
        ("budgets.day.dollars", "lots", "must be a number"),
        ("budgets.day.dollars.x", "1", "holds no settings of its own"),
        ("seed", "[", "not valid YAML"),
        ("endpoints.x.key_env", "sk-planted-0123456789", "must be the name of an environment variable"),
        ("endpoints.x.headers.Authorization", "Bearer planted", "would put a key into a file"),
        ("", "1", "unknown setting ''"),
    ],
)
def test_set_refuses_what_is_wrong_and_changes_nothing(
    tmp_path: Path, key: str, value: str, words: str
) -> None:
    file = tmp_path / "config" / "rl-cli" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(HAND_WRITTEN)
    outcome = rl_cli("config", "set", key, value, cwd=tmp_path)
    assert outcome.code == 2
    assert words in outcome.err
    assert "planted" not in outcome.err
    assert outcome.err.count("\n") == 1
    assert file.read_text() == HAND_WRITTEN


def test_set_writes_a_first_file_and_is_undone_by_null(tmp_path: Path) -> None:
    for key, value in (("model", "scripted/x.yaml"), ("budgets.day.dollars", "5"), ("model", "null")):
        assert rl_cli("config", "set", key, value, cwd=tmp_path).code == 0
    shown = json.loads(rl_cli("config", "show", "--json", cwd=tmp_path).out)
    assert shown["model"] is None
    assert shown["budgets"] == {"day": {"dollars": 5}}


KEYS = st.sampled_from(["model", "seed", "budgets.day.dollars", "budgets.run.hours", "endpoints.a.window"])


@given(st.lists(st.tuples(KEYS, st.one_of(st.none(), st.integers(1, 9))), max_size=6), st.booleans())
def test_set_after_set_reads_back_as_it_was_set(
    changes: list[tuple[str, int | None]], from_scratch: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", folder)
        user_file().parent.mkdir(parents=True)
        user_file().write_text("" if from_scratch else HAND_WRITTEN)
        for key, value in changes:
            shown = "null" if value is None else f"a/{value}" if key == "model" else str(value)
            set_setting(key, shown)
        values = leaves(read_settings_file(user_file()))
        for key, value in dict(changes).items():
            assert values.get(key) == (f"a/{value}" if key == "model" and value else value)
        comments = [line.partition("#")[2] for line in HAND_WRITTEN.splitlines() if "#" in line]
        assert from_scratch or all(comment in user_file().read_text() for comment in comments)


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("budgets: {run: {dollars: 2}}\n", "budgets.run.dollars", ""),
        ("budgets: {run: {dollars: 2}, day: {hours: 1}}\n", "budgets.run", "budgets: {day: {hours: 1}}\n"),
        ("seed: 1\nbudgets:\n  run:\n    dollars: 2\n", "budgets.run.dollars", "seed: 1\n"),
        ("seed: 1\nmodel: a/b  # mine\n", "model", "seed: 1\n# mine\n"),
        ("budgets:\n  day: {hours: 1, dollars: 2}\n", "budgets.day.dollars", "budgets:\n  day: {hours: 1}\n"),
        ("seed: 1\n", "budgets.run", "seed: 1\n"),
    ],
)
def test_unsetting_leaves_nothing_empty_behind(home: Path, before: str, key: str, after: str) -> None:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text(before)
    set_setting(key, "null")
    assert user_file().read_text() == after


def test_a_key_that_an_endpoint_does_not_need_stays_null(home: Path) -> None:
    set_setting("endpoints.vllm.key_env", "null")
    assert read_settings_file(user_file()) == {"endpoints": {"vllm": {"key_env": None}}}


def test_the_name_of_a_model_is_checked_when_it_is_set() -> None:
    outcome = rl_cli("config", "set", "model", "foo/bar")
    assert outcome.code == 2
    assert "unknown model 'foo/bar'" in outcome.err
    assert not user_file().exists()
    assert rl_cli("config", "set", "model", "openai/any-name").code == 0  # its key may come later
    assert rl_cli("config", "set", "model", "null").code == 0


def test_a_negative_number_is_a_value_and_not_an_option() -> None:
    outcome = rl_cli("config", "set", "budgets.day.dollars", "-3")
    assert outcome.code == 2
    assert "'budgets.day.dollars' must be a number of at least 0, not -3" in outcome.err


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ("budgets: {session: {euros: 2}}\n", "known: dollars, tokens, gpu_hours, hours"),
        ("budgets: {session: {dolars: 2}}\n", "did you mean dollars"),
        ("api_key: abc\n", "keys come from the environment only"),
        ("endpoints: {x: {api_key: abc}}\n", "keys come from the environment only"),
        ("endpoints: {x: {token: abc}}\n", "keys come from the environment only"),
    ],
)
def test_the_hint_for_an_unknown_name_helps(tmp_path: Path, content: str, hint: str) -> None:
    (tmp_path / "x.yaml").write_text(content)
    outcome = rl_cli("config", "check", str(tmp_path / "x.yaml"))
    assert outcome.code == 2
    assert hint in outcome.err
    assert "abc" not in outcome.err
