"""Which tools an item is offered: by its seed and key, at the percentages that were written down."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rl_cli.core.errors import BadUsage
from tools.distributions import load_catalogue
from tools.toolsets import TOOLSETS

SHIPPED = [
    "default",
    "research",
    "science",
    "development",
    "safe",
    "balanced",
    "minimal",
    "terminal_only",
    "terminal_web",
    "reasoning",
    "terminal_tasks",
    "browser_tasks",
    "mixed_tasks",
    "image_gen",
    "creative",
]
ITEMS = 4000


def all_there(name: str) -> str | None:
    return TOOLSETS[name].unavailable


def own(tmp_path: Path, text: str) -> Path:
    (tmp_path / "toolsets.yaml").write_text(text)
    return tmp_path / "toolsets.yaml"


def test_the_shipped_ones_are_there_and_every_draw_is_of_what_they_name() -> None:
    catalogue = load_catalogue()
    assert list(catalogue.distributions) == SHIPPED
    for name in SHIPPED:
        for item in range(50):
            drawn = catalogue.draw(name, 0, str(item), all_there)
            assert drawn == tuple(sorted(set(drawn)))
            assert drawn
            assert not {"vision", "image_generation"} & set(drawn)
            assert set(drawn) <= set(catalogue.find(name).percents)


def test_each_set_comes_as_often_as_it_says_and_by_itself() -> None:
    catalogue = load_catalogue()
    percents = catalogue.find("balanced").percents
    draws = [set(catalogue.draw("balanced", 7, f"item-{n}", all_there)) for n in range(ITEMS)]
    able = [name for name in percents if TOOLSETS[name].unavailable is None]
    for name in able:
        assert sum(name in draw for draw in draws) / ITEMS == pytest.approx(0.5, abs=0.05)
    both = sum({"terminal", "web"} <= draw for draw in draws) / ITEMS
    assert both == pytest.approx(0.25, abs=0.04)


def test_a_draw_depends_on_seed_and_item_only() -> None:
    catalogue = load_catalogue()

    def draws(seed: int) -> list[tuple[str, ...]]:
        return [catalogue.draw("science", seed, f"item-{n}", all_there) for n in range(40)]

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)
    code = (
        "from tools.distributions import load_catalogue as c; from tools.toolsets import TOOLSETS as t; "
        "print([c().draw('science', 1, f'item-{n}', lambda s: t[s].unavailable) for n in range(40)])"
    )
    told = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str(draws(1))


def test_a_set_that_is_missing_here_does_not_move_the_others() -> None:
    def without_web(name: str) -> str | None:
        return "no key" if name == "web" else all_there(name)

    catalogue = load_catalogue()
    for item in range(200):
        whole = catalogue.draw("balanced", 0, str(item), all_there)
        fewer = catalogue.draw("balanced", 0, str(item), without_web)
        if len(whole) > 1:  # else it may be the one of an item for which none was drawn
            assert set(fewer) == set(whole) - {"web"}
        assert fewer


def test_where_nothing_can_be_drawn_the_reasons_are_given() -> None:
    with pytest.raises(BadUsage) as raised:
        load_catalogue().draw("creative", 0, "x", lambda name: f"no {name} here")
    assert "creative" in raised.value.message
    assert "web: no web here" in str(raised.value.hint)


def test_a_person_adds_distributions_and_names_for_several_sets(tmp_path: Path) -> None:
    file = own(
        tmp_path,
        "toolsets: {coding: [terminal, files]}\n"
        "distributions:\n  mine: {description: My own., toolsets: {coding: 50, math: 20}}\n",
    )
    catalogue = load_catalogue(file)
    assert list(catalogue.distributions) == [*SHIPPED, "mine"]
    assert catalogue.find("mine").own
    draws = {catalogue.draw("mine", 0, str(n), all_there) for n in range(400)}
    assert (
        {("files", "terminal"), ("math",)}
        <= draws
        <= {
            ("files", "terminal"),
            ("math",),
            ("files", "math", "terminal"),
        }
    )
    reasons = catalogue.usable("mine", lambda name: "no shell" if name == "terminal" else None)
    assert reasons == {"coding": "no shell", "math": None}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "mapping of toolsets and distributions"),
        ("other: {}", "mapping of toolsets and distributions"),
        ("distributions: {mine: {toolsets: {terminl: 5}}}", "did you mean terminal"),
        ("distributions: {mine: {toolsets: {rl: 5}}}", "assistant's own"),
        ("distributions: {mine: {toolsets: {web: 0}}}", "above 0 and at most 100"),
        ("distributions: {mine: {toolsets: {web: 101}}}", "above 0 and at most 100"),
        ("distributions: {mine: {toolsets: {web: true}}}", "above 0 and at most 100"),
        ("distributions: {mine: {toolsets: {web: .nan}}}", "above 0 and at most 100"),
        ("distributions: {mine: {toolsets: {}}}", "names no toolset"),
        ("distributions: {mine: {web: 5}}", "must have 'toolsets'"),
        ("distributions: {default: {toolsets: {web: 5}}}", "shipped one"),
        ("toolsets: {web: [terminal]}", "shipped one"),
        ("toolsets: {mine: terminal}", "list of toolsets"),
        ("toolsets: {mine: [nothing]}", "unknown toolset"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadUsage) as raised:
        load_catalogue(own(tmp_path, text))
    assert said in str(raised.value)


def test_an_unknown_distribution_is_answered_with_the_nearest() -> None:
    with pytest.raises(BadUsage, match="did you mean terminal_only"):
        load_catalogue().find("terminal-only")
