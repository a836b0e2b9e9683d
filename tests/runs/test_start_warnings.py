from __future__ import annotations

from pathlib import Path

import pytest

from rl_cli.config.edit import resolve
from rl_cli.core.settings import load_settings
from rl_cli.runs.start_warnings import start_warnings


@pytest.mark.parametrize(("rate", "warned"), [(0.05, True), (0.001, False)])
def test_a_learning_rate_far_above_the_profiles_is_said_at_the_start(
    home: Path, rate: float, warned: bool
) -> None:
    config = resolve("gsm8k-mini", None, {"grpo.learning_rate": rate})
    said = " ".join(start_warnings(config, home, load_settings()))
    assert ("167 times that of the profile (0.0003)" in said) is warned


@pytest.mark.parametrize(
    ("wanted", "key", "mode", "said"),
    [
        ("live", "", "", "no W&B key"),
        ("online", "", "offline", "no W&B key"),
        ("live", "k" * 40, "offline", "although WANDB_MODE=offline"),
        ("live", "k" * 40, "disabled", "nothing is recorded"),
        ("live", "k" * 40, "", None),
        ("auto", "", "offline", None),
    ],
)
def test_figures_that_do_not_go_where_the_config_says_are_told(
    home: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, key: str, mode: str, said: str | None
) -> None:
    monkeypatch.setenv("NETRC", str(home / "none"))
    monkeypatch.setenv("WANDB_API_KEY", key)
    monkeypatch.setenv("WANDB_MODE", mode)
    config = resolve("gsm8k-mini", None, {"tracking.wandb": wanted})
    found = start_warnings(config, home, load_settings())
    assert found == [] if said is None else said in found[0]
