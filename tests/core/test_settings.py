from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_cli.core.errors import BadUsage
from rl_cli.core.settings import (
    answers_file,
    config_folder,
    ensure_home,
    folder_file,
    home,
    load_settings,
    loosened_by,
    trust_register,
)
from rl_cli.core.settings_layers import Layer, leaves, loosened, merge
from rl_cli.core.settings_schema import SETTINGS, check_setting
from rl_cli.core.trust import revoke, trust


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The working folder's and the user's settings file, neither written yet."""
    (tmp_path / "config" / "rl-cli").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work" / "rl-cli.yaml", tmp_path / "config" / "rl-cli" / "config.yaml"


def test_the_strongest_source_wins_and_is_named(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    local, user = files
    assert load_settings().origins["environments_dir"] == "default"
    user.write_text("model: a/user\nseed: 1\nenvironments_dir: user_envs\n")
    local.write_text("model: a/local\nseed: 2\n")
    monkeypatch.setenv("RL_CLI_SEED", "3")
    settings = load_settings({"model": "a/flag", "seed": None})
    assert (settings.model, settings.seed, settings.environments_dir) == ("a/flag", 3, "user_envs")
    assert (
        settings.origins.items()
        >= {
            "model": "flag",
            "seed": "environment variable RL_CLI_SEED",
            "environments_dir": str(user),
        }.items()
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("modle: x", "did you mean model?"),
        ("seed: three", "'seed' must be a whole number"),
        ("seed: true", "'seed' must be a whole number"),
        ("model: 3", "'model' must be text"),
        ("model: [", "not valid YAML"),
        ("- model", "must be a mapping"),
        ("model: \x00", "not valid YAML"),
        ("model: " + "[" * 5000, "nested more than"),
        ("model: &m a/b", "anchors"),
        ("seed: 1\nseed: 2", "given twice"),
        ("approvals: {tool: x}", "'approvals' must be a list"),
        ("approvals: [{tool: x}]", "'approvals.0' needs 'do'"),
        ("approvals: [{tool: x, do: maybe}]", "'approvals.0.do' must be allow, ask or deny"),
        ("approvals: [{tool: x, do: ask, argument: {}}]", "did you mean arguments?"),
        ("budgets: {week: {dollars: 1}}", "unknown setting 'budgets.week'"),
        ("budgets: {day: {dolars: 1}}", "did you mean dollars"),
        ("budgets: {day: {dollars: -1}}", "'budgets.day.dollars' must be a number of at least 0"),
        ("budgets: {day: {dollars: .nan}}", "must be a number"),
        ("budgets: {day: {dollars: .inf}}", "must be a number"),
        ("budgets: {day: {tokens: 0x" + "f" * 6000 + "}}", "not that number"),
        ("budgets: {day: 5}", "a mapping of dollars, tokens, gpu_hours, hours"),
        ("prices: {models: {gpt: {input: 1, output: 2}}}", "'gpt' is no model (provider/name)"),
        ("prices: {models: {a/b: {input: 1}}}", "needs 'output'"),
        ("allow_unknown_prices: 1", "must be true or false"),
        ("endpoints: {run: {base_url: 'http://x'}}", "a name of rl-cli's own"),
        ("endpoints: {'a/b': {}}", "'a/b' is no endpoint name"),
        ("endpoints: {a: {api_key: x}}", "unknown setting 'endpoints.a.api_key'"),
        ("endpoints: {a: {api: grpc}}", "must be openai or anthropic"),
        ("endpoints: {a: {base_url: 'file:///etc/passwd'}}", "must be an address"),
        ("endpoints: {a: {base_url: 'http://x:99999/v1'}}", "must be an address"),
        ("endpoints: {a: {headers: {X-Api-Key: abc}}}", "would put a key into a file"),
        ("endpoints: {a: {thinking: very}}", "'endpoints.a.thinking' must be"),
        ("# " + "x" * 1_000_000, "larger than 1 MB"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line_that_names_it(
    files: tuple[Path, Path], content: str, words: str
) -> None:
    files[0].write_text(content)
    with pytest.raises(BadUsage) as caught:
        load_settings()
    assert words in str(caught.value)
    assert "rl-cli.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        "endpoints: {a: {key_env: sk-planted-secret-1}}",
        "endpoints: {a: {base_url: 'http://me:planted-secret-1@host/v1'}}",
        "endpoints: {a: {base_url: 'http://host/v1?key=planted-secret-1'}}",
        "endpoints: {a: {headers: {Authorization: planted-secret-1}}}",
    ],
)
def test_a_key_in_a_file_is_refused_and_not_repeated(files: tuple[Path, Path], content: str) -> None:
    files[1].write_text(content)
    with pytest.raises(BadUsage, match="environment") as caught:
        load_settings()
    assert "planted" not in str(caught.value)


def test_a_settings_file_that_is_no_regular_file_is_refused_at_once(files: tuple[Path, Path]) -> None:
    os.mkfifo(files[0])
    with pytest.raises(BadUsage, match=r"rl-cli.yaml is a device or a pipe"):
        load_settings()


def test_empty_files_and_null_values_set_nothing(files: tuple[Path, Path]) -> None:
    files[0].write_text("")
    files[1].write_text("model:\n")
    assert load_settings().model is None


def test_a_wrong_variable_is_refused(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RL_CLI_SEED", "many")
    with pytest.raises(BadUsage, match="RL_CLI_SEED"):
        load_settings()


def test_home_is_made_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RL_CLI_HOME", str(tmp_path / "a" / "b"))
    assert home() == tmp_path / "a" / "b"
    assert not home().exists()
    assert ensure_home().is_dir()
    assert list(home().iterdir()) == []
    (tmp_path / "file").touch()
    monkeypatch.setenv("RL_CLI_HOME", str(tmp_path / "file"))
    with pytest.raises(BadUsage, match="home folder cannot be used"):
        ensure_home()


USER = """
endpoints: {vllm: {base_url: "http://user:1/v1", key_env: USER_KEY}, tgi: {base_url: "http://user:2/v1"}}
approvals: [{tool: rl_start_*, do: deny}]
budgets: {day: {dollars: 5, tokens: 1000}, run: {gpu_hours: 2}}
prices: {gpu_hour: 2.5, models: {a/b: {input: 1, output: 2}}}
"""


def test_layers_are_merged_by_name(files: tuple[Path, Path]) -> None:
    local, user = files
    user.write_text(USER)
    local.write_text("""
endpoints: {vllm: {base_url: "http://folder/v1"}}
approvals: [{tool: "*", do: allow}]
budgets: {day: {dollars: 9}, session: {hours: 3}}
prices: {models: {a/b: {input: 0, output: 0}, c/d: {input: 1, output: 1}}}
""")
    answers_file().write_text("- {tool: x, do: allow}\n")
    trust(trust_register(), folder_file(), local.read_bytes())
    settings = load_settings()
    assert settings.endpoints == {
        "vllm": {"base_url": "http://folder/v1"},
        "tgi": {"base_url": "http://user:2/v1"},
    }
    assert [(r["tool"], r["by"]) for r in settings.approvals] == [
        ("*", "trusted"),
        ("rl_start_*", "user"),
        ("x", "remembered"),
    ]
    assert settings.budgets == {
        "day": {"dollars": 9, "tokens": 1000},
        "run": {"gpu_hours": 2},
        "session": {"hours": 3},
    }
    assert settings.prices["gpu_hour"] == 2.5
    assert settings.prices["models"].keys() == {"a/b", "c/d"}
    shown = leaves(
        {name: getattr(settings, name) for name in ("endpoints", "approvals", "budgets", "prices")}
    )
    assert shown.keys() <= settings.origins.keys()
    assert settings.origins["budgets.day.dollars"] == str(local)
    assert settings.origins["budgets.day.tokens"] == str(user)
    assert settings.origins["approvals.2"] == str(answers_file())


def test_a_folder_may_tighten(files: tuple[Path, Path]) -> None:
    local, user = files
    user.write_text(USER)
    local.write_text("""
model: a/b
approvals: [{tool: "*", do: ask}, {tool: rl_*, do: deny}]
budgets: {day: {dollars: 1, tokens: 1000}, session: {dollars: 7}}
allow_unknown_prices: false
""")
    settings = load_settings()
    assert settings.budgets["day"] == {"dollars": 1, "tokens": 1000}
    assert settings.budgets["session"] == {"dollars": 7}
    assert settings.origins["budgets.day.dollars"] == str(local)
    assert [r["by"] for r in settings.approvals] == ["folder", "folder", "user"]


LOOSE = {
    "endpoints": "endpoints: {openai: {base_url: 'http://evil/v1'}}",
    "key_env": "endpoints: {vllm: {base_url: 'http://user:1/v1', key_env: OTHER_KEY}}",
    "approvals": "approvals: [{tool: nothing, do: deny}, {tool: x, do: allow}]",
    "budgets": "budgets: {day: {dollars: 5.01}}",
    "prices": "prices: {gpu_hour: 0.01}",
    "prices of a model": "prices: {models: {a/b: {input: 0, output: 0}}}",
    "allow_unknown_prices": "allow_unknown_prices: true",
}


@pytest.mark.parametrize("content", LOOSE.values(), ids=LOOSE.keys())
def test_a_folder_may_not_loosen_unless_trusted(files: tuple[Path, Path], content: str) -> None:
    local, user = files
    user.write_text(USER)
    local.write_text(content)
    with pytest.raises(BadUsage) as caught:
        load_settings()
    assert "rl-cli config trust" in str(caught.value)
    assert str(local) in str(caught.value)
    assert "\n" not in str(caught.value)
    trust(trust_register(), folder_file(), local.read_bytes())
    load_settings()
    local.write_text(content + "\n# one more line\n")
    with pytest.raises(BadUsage, match="changed since you trusted it"):
        load_settings()
    local.write_text(content)
    assert revoke(trust_register(), folder_file())
    with pytest.raises(BadUsage, match="rl-cli config trust"):
        load_settings()


def test_trust_holds_for_one_folder_only(files: tuple[Path, Path], tmp_path: Path) -> None:
    files[0].write_text(LOOSE["approvals"])
    trust(trust_register(), folder_file(), files[0].read_bytes())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "rl-cli.yaml").write_text(LOOSE["approvals"])
    os.chdir(tmp_path / "other")
    with pytest.raises(BadUsage, match="rl-cli config trust"):
        load_settings()


def test_links_and_variables_are_no_way_round(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, user = files
    loose = tmp_path / "loose.yaml"
    loose.write_text(LOOSE["approvals"])
    local.symlink_to(loose)
    with pytest.raises(BadUsage, match="rl-cli config trust"):
        load_settings()
    local.unlink()
    user.write_text(LOOSE["approvals"])
    local.symlink_to(user)
    with pytest.raises(BadUsage, match="rl-cli config trust"):
        load_settings()
    local.unlink()
    user.unlink()
    (tmp_path / "work" / ".env").write_text("RL_CLI_ALLOW_UNKNOWN_PRICES=true\n")
    for name in ("APPROVALS", "ALLOW_UNKNOWN_PRICES", "BUDGETS", "ENDPOINTS"):
        monkeypatch.setenv(f"RL_CLI_{name}", "[{tool: '*', do: allow}]")
    assert load_settings().approvals == []
    assert load_settings().allow_unknown_prices is False
    (tmp_path / "work" / "rl-cli").mkdir()
    (tmp_path / "work" / "rl-cli" / "config.yaml").write_text(LOOSE["approvals"])
    monkeypatch.setenv("XDG_CONFIG_HOME", ".")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config_folder() == tmp_path / ".config" / "rl-cli"
    assert load_settings().approvals == []


def test_a_damaged_register_trusts_nothing(files: tuple[Path, Path]) -> None:
    files[0].write_text(LOOSE["approvals"])
    for content in ("{", "[]", json.dumps({str(folder_file()): True}), "\xff"):
        trust_register().write_text(content)
        with pytest.raises(BadUsage, match=r"trusted\.json is damaged"):
            load_settings()
    assert loosened_by(files[0].read_bytes()) == ["approvals (allow x)"]


AMOUNT = st.integers(0, 3)
TREE = st.fixed_dictionaries(
    {},
    optional={
        "approvals": st.lists(
            st.fixed_dictionaries({"tool": st.just("*"), "do": st.sampled_from(["allow", "ask", "deny"])}),
            max_size=3,
        ),
        "budgets": st.dictionaries(
            st.sampled_from(["day", "run"]), st.dictionaries(st.sampled_from(["dollars", "hours"]), AMOUNT)
        ),
        "endpoints": st.dictionaries(
            st.sampled_from(["a", "b.c"]), st.fixed_dictionaries({"window": st.integers(1, 2)})
        ),
        "prices": st.fixed_dictionaries(
            {},
            optional={
                "gpu_hour": AMOUNT,
                "models": st.dictionaries(
                    st.sampled_from(["a/b", "c/d.e"]),
                    st.fixed_dictionaries({"input": AMOUNT, "output": AMOUNT}),
                ),
            },
        ),
        "allow_unknown_prices": st.booleans(),
        "seed": st.integers(),
    },
)


@given(TREE, TREE)
def test_what_a_folder_sets_without_trust_never_loosens(folder: dict[str, Any], user: dict[str, Any]) -> None:
    for tree in (folder, user):
        assert all(check_setting(name, value, "test") == value for name, value in tree.items())
    own = [Layer("user", user, "user")]
    before, _ = merge(own)
    after, origins = merge([Layer("folder", folder, "folder"), *own])
    assert origins.keys() == leaves(after).keys()
    for scope, limits in before["budgets"].items():
        assert all(after["budgets"][scope][unit] <= limit for unit, limit in limits.items())
    if loosened(folder, own):
        return
    assert {name: after[name] for name in ("endpoints", "prices", "allow_unknown_prices")} == {
        name: before[name] for name in ("endpoints", "prices")
    } | {"allow_unknown_prices": after["allow_unknown_prices"] and before["allow_unknown_prices"]}
    assert not any(rule["by"] == "folder" and rule["do"] == "allow" for rule in after["approvals"])
    assert [r for r in after["approvals"] if r["by"] == "user"] == before["approvals"]


@given(TREE, TREE, TREE)
def test_the_strongest_layer_that_sets_a_value_wins(
    a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]
) -> None:
    layers = [Layer(name, tree, "user") for name, tree in (("a", a), ("b", b), ("c", c))]
    whole, origins = merge(layers)
    for path, value in leaves({"budgets": whole["budgets"], "prices": whole["prices"]}).items():
        if value == {}:
            continue
        strongest = next(layer for layer in layers if path in leaves(dict(layer.values)))
        assert leaves(dict(strongest.values))[path] == value
        assert origins[path] == strongest.origin


def test_the_documented_settings_are_good_ones(files: tuple[Path, Path]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "formats.md").read_text("utf-8")
    files[1].write_text(text.partition("\n## Settings\n")[2].partition("```yaml\n")[2].partition("```")[0])
    values = leaves({name: getattr(load_settings(), name) for name in SETTINGS})
    assert len(values) >= 20
    assert values.keys() == load_settings().origins.keys()
