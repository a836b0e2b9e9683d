from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from environments.policies.base import Usage
from rl_cli.spending.ledger import Entry, Ledger
from rl_cli.spending.units import Amounts
from tests.spending.kit import Clock, dead, meter

COSTS = (
    "import sys; sys.argv[0] = 'rl-cli'; from rl_cli.cli import main, costs; "
    "main.COMMANDS['costs'] = ('rl_cli.cli.costs', 'What was spent.'); main.main()"
)


def costs(*words: str) -> tuple[int, str, str]:
    argv = [sys.executable, "-P", "-c", COSTS, "costs", *words]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def found(*words: str) -> dict[str, Any]:
    code, out, err = costs(*words, "--json")
    assert (code, err) == (0, "")
    answer: dict[str, Any] = json.loads(out)
    return answer


@pytest.fixture
def spent(home: Path, tmp_path: Path) -> Path:
    """Two sessions of today, a request under way, one abandoned, a run, and a request of yesterday."""
    for id in ("20261129-100000-aaaa", "20261129-110000-bbbb"):
        made, _ = meter(home, id)
        made.reserve("x/y", 1000, 100).settle(Usage(1000, 50))
        made.reserve("x/unknown", 10, 10).settle(Usage(10, 10))
    made.reserve("x/z", 1000, 0)
    ledger = Ledger(home)
    owners = [dead()]
    ledger.reserve(
        Entry("request", Amounts(9, 9), Amounts(0.25, 250), session="20261129-110000-bbbb", owners=owners)
    )
    ledger.reserve(Entry("run", Amounts(5, 0, 2, 1), run="20261129-113000-gsm8k", state="settled"))
    old = Entry("request", Amounts(7, 70), session="20261128-100000-cccc", model="x/y", state="settled")
    Ledger(home, Clock(time.time() - 86_400)).reserve(old)
    folder = tmp_path / "config" / "rl-cli"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(
        "budgets: {day: {dollars: 16, tokens: 10000}, session: {dollars: 4}}\n"
    )
    return home


def test_nothing_was_spent_yet(home: Path) -> None:
    code, out, err = costs()
    assert (code, err) == (0, "")
    assert out.endswith(": $0.00\n")
    assert not home.exists()
    assert costs("--session", "latest")[0] == 2


def test_today_by_session_run_and_model(spent: Path) -> None:
    answer = found()
    total = answer["total"]
    assert total["dollars"] == pytest.approx(2 * 1.5 + 0.25 + 5)
    assert (total["requests"], total["tokens"]) == (6, 2 * 1070 + 250)
    assert (total["reserved_dollars"], total["abandoned_dollars"], total["unpriced"]) == (1.0, 0.25, 2)
    assert [row["id"] for row in answer["sessions"]] == ["20261129-110000-bbbb", "20261129-100000-aaaa"]
    assert {row["id"]: row["dollars"] for row in answer["runs"]} == {"20261129-113000-gsm8k": 5.0}
    assert {row["id"] for row in answer["models"]} == {"x/y", "x/z", "x/unknown"}
    day = {row["unit"]: row for row in answer["budgets"]}
    assert day["dollars"]["share"] == pytest.approx(8.25 / 16)
    assert day["dollars"]["reserved"] == 1.0


def test_the_text_names_what_is_an_estimate(spent: Path) -> None:
    code, out, err = costs()
    assert (code, err) == (0, "")
    for words in ("$8.25", "reserved for what is under way: $1.00", "abandoned", "2 of unknown price", "52%"):
        assert words in out


def test_time_is_told_as_people_read_it(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "rl-cli"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("budgets: {day: {hours: 2.5}}\n")
    ledger = Ledger(home)
    ledger.reserve(Entry("turn", Amounts(hours=80 / 3600), session="20261129-100000-aaaa", state="settled"))
    ledger.reserve(
        Entry("run", Amounts(hours=53 / 3600), run="20261129-113000-gsm8k", model="tiny", state="settled")
    )
    _, out, _ = costs()
    first, *_ = out.splitlines()
    assert first.endswith("$0.00, 1 min 20 s of the assistant's work, 53 s of runs")
    for words in ("2.5 h", "1 min 20 s", "53 s"):
        assert words in out.removeprefix(first)
    assert next(line for line in out.splitlines() if line.startswith("tiny")).endswith("53 s")


def test_one_session_one_run_one_day(spent: Path) -> None:
    session = found("--session", "20261129-10")
    assert session["total"]["dollars"] == pytest.approx(1.5)
    assert {row["scope"]: row["limit"] for row in session["budgets"]} == {"session": 4.0, "day": 16.0} | {
        "day": 10000
    }
    assert found("--session", "latest")["session"] == "20261129-110000-bbbb"
    assert found("--run", "latest")["total"]["gpu_hours"] == 2.0
    assert found("--day", "yesterday")["total"]["dollars"] == 7.0
    assert found("--day", "all")["total"]["dollars"] == pytest.approx(15.25)
    assert found("--session", "20261128-100000-cccc")["total"]["dollars"] == 7.0
    assert "20261129-113000-gsm8k" in costs("--run", "2026")[1]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--day", "someday"), "for example --day 2026-11-29"),
        (("--session", "20261129"), "means 2 sessions"),
        (("--session", "20261129-100000-aaab"), "did you mean 20261129-100000-aaaa"),
    ],
)
def test_what_is_asked_wrongly_is_one_line(spent: Path, words: tuple[str, ...], hint: str) -> None:
    code, out, err = costs(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert hint in err


def test_a_damaged_ledger_is_one_line(home: Path) -> None:
    home.mkdir()
    (home / "spending.db").write_bytes(b"x" * 5000)
    code, _, err = costs()
    assert (code, err.count("\n")) == (1, 1)
    assert "spending.db is damaged" in err


def test_it_imports_nothing_heavy(spent: Path) -> None:
    script = COSTS.replace(
        "main.main()", "main.run(['costs', '--json']); print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True)
    names = {name.partition(".")[0] for name in done.stderr.split()}
    assert not {"genai_prices", "openai", "anthropic", "rich", "psutil"} & names


def test_sessions_that_cost_nothing_are_counted_not_listed(spent: Path) -> None:
    for number in range(3):
        free = Entry("turn", Amounts(hours=0.01), session=f"20261129-12000{number}-free", state="settled")
        Ledger(spent).reserve(free)
    Ledger(spent).reserve(Entry("turn", Amounts(hours=0.01), session="batch-b", state="settled"))
    _, out, _ = costs()
    assert "3 sessions that cost nothing but time" in out
    assert "-free" not in out
    assert "20261129-100000-aaaa" in out
