"""A batch keeps to the budgets."""

from __future__ import annotations

from pathlib import Path

from rl_cli.core.settings import config_folder
from rl_cli.core.settings import home as home_folder
from rl_cli.data.batch.folder import batch_folder
from rl_cli.spending.ledger import Ledger
from tests.data.generation.batches import agent, entries, make, prompts_done, write_prompts
from tests.wire.server import WireServer


def _set(text: str) -> None:
    file = config_folder() / "config.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_it_stops_where_the_budget_ends_and_goes_on_with_a_larger_one(tmp_path: Path) -> None:
    _set("budgets: {session: {tokens: 12000}}\nendpoints: {openai: {max_output_tokens: 1000}}\n")
    input_ = write_prompts(tmp_path / "in.jsonl", [f"p{n}" for n in range(60)])
    with WireServer(agent) as server:
        ended = make(input_, server, concurrency=2)
        assert (ended.state, ended.exit_code) == ("stopped", 3)
        assert ended.reason
        assert "budget" in ended.reason
        assert 0 < len(entries()) < 60
        assert {entry["state"] for entry in entries()} <= {"done", "open"}
        assert batch_folder("b").state()["state"] == "stopped"
        with Ledger(home_folder()).reading() as books:
            totals = books.totals("session", "batch-b")
        used = sum(_tokens(entry) for entry in entries())
        assert used == totals.spent.tokens <= 12000
        assert totals.reserved.tokens == 0
        _set("budgets: {session: {tokens: 1000000}}\n")
        assert make(input_, server, concurrency=2).exit_code == 0
    assert prompts_done().total() == 60


def test_what_is_spent_stands_in_the_state_and_in_the_rows(tmp_path: Path) -> None:
    _set("prices: {models: {openai/m: {input: 1000, output: 1000}}}\n")
    with WireServer(agent) as server:
        make(write_prompts(tmp_path / "in.jsonl", ["a", "b"]), server)
    spent = batch_folder("b").state()["spend"]
    rows = [entry["row"] for entry in entries()]
    assert spent > 0
    assert abs(sum(row["cost_usd"] or 0 for row in rows if row) - spent) < 1e-6
    assert abs(sum(_tokens(entry) for entry in entries()) / 1000 - spent) < 1e-6


def _tokens(entry: object) -> int:
    assert isinstance(entry, dict)
    usage = entry["row"]["usage"]
    return int(usage["input_tokens"] + usage["output_tokens"])
