from __future__ import annotations

import os
from pathlib import Path

import pytest

from rl_cli.core.errors import BadUsage
from rl_cli.core.settings import ensure_home, home, load_settings


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
