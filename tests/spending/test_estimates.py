from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rl_cli.config.edit import resolve
from rl_cli.config.tree import RunConfig
from rl_cli.config.warm_start import STARTING, settled_by
from rl_cli.core.files import append_jsonl, write_json
from rl_cli.spending.estimates import budget_warning, estimate_run, estimate_test, too_long
from rl_cli.spending.gate import why_not
from rl_cli.spending.rates import Rate, rate_here
from tests.runs.kit import replay_config
from tests.spending.kit import meter, settings
from tools.dispatcher import CallContext, Estimate, find_tool
from tools.operations.draft import Draft, put_draft

RATE = Rate(gpus=2, gpu_hour=2.5)


def earlier(home: Path, name: str, minutes: float, config: RunConfig, **changes: object) -> None:
    state = {
        "environment": config.environment.name,
        "profile": config.profile,
        "backend": config.backend.name,
    }
    state |= {"model": config.model.name, "total_steps": config.grpo.steps, "state": "finished"}
    state |= {"started": "2026-11-29T10:00:00.000Z", "ended": f"2026-11-29T10:{minutes:02.0f}:00.000Z"}
    (home / "runs" / name).mkdir(parents=True)
    write_json(home / "runs" / name / "state.json", state | changes)


WARM_STARTED = {"kind": "warm_start", "source": "trained here", "time": "2026-11-29T10:03:00.000Z"}


def keep_warm_start(home: Path, config: RunConfig) -> None:
    folder = home / "warm_starts" / "0123456789abcdef"
    folder.mkdir(parents=True)
    write_json(folder / "warm_start.json", {"causes": {**settled_by(config), "rows": "of the environment"}})


def inference_test(config: RunConfig, seconds: float, **more: float) -> dict:
    request = {"config": config.model_dump(mode="json"), "models": [STARTING]}
    return {"request": request, "results": [{"rollouts": 48}], "seconds": seconds, **more}


def test_a_run_is_estimated_from_earlier_ones_of_its_kind(home: Path) -> None:
    config = replay_config(grpo={"steps": 40})
    unknown = estimate_run(config, home, RATE)
    assert (unknown.seconds, unknown.dollars) == (None, None)
    assert unknown.basis == "no earlier run of this kind, and no budget ends it (budget.max_hours would)"
    earlier(home, "a", 20, config, total_steps=20)
    scaled = estimate_run(config, home, RATE)
    assert scaled.seconds == 2400
    assert "scaled" in scaled.basis
    earlier(home, "b", 30, config)
    earlier(home, "c", 12, config)
    earlier(home, "d", 1, config, state="failed")
    earlier(home, "e", 1, config, environment="other")
    (home / "runs" / "f").mkdir()
    (home / "runs" / "f" / "state.json").write_text("{torn")
    found = estimate_run(config, home, RATE)
    assert (found.seconds, found.gpu_hours, found.dollars) == (1260, pytest.approx(0.7), pytest.approx(1.75))
    assert found.basis == "2 earlier runs of this kind"
    assert "2 GPUs" in found.where


def test_what_surrounds_the_steps_does_not_grow_with_them(home: Path) -> None:
    config = replay_config(grpo={"steps": 40})
    earlier(home, "a", 10, config, total_steps=5)  # 5 steps of a minute, 5 minutes before and after
    for step in range(1, 6):
        row = {"phase": "grpo", "step": step, "time": f"2026-11-29T10:{3 + step:02.0f}:00.000Z"}
        append_jsonl(home / "runs" / "a" / "metrics.jsonl", row)
    found = estimate_run(config, home, Rate())
    assert found.seconds == (5 + 40) * 60
    assert found.basis == "1 earlier run of this kind, with fewer or more steps"


def test_a_warm_start_that_is_not_kept_yet_is_added(home: Path) -> None:
    config = resolve("gsm8k-mini", "cpu-demo", {})
    earlier(home, "a", 10, config)
    for event in ({"kind": "phase", "name": "sft", "time": "2026-11-29T10:01:00.000Z"}, WARM_STARTED):
        append_jsonl(home / "runs" / "a" / "events.jsonl", event)
    cold = estimate_run(config, home, Rate())
    assert (cold.seconds, "which is not kept yet" in cold.basis) == (600, True)
    keep_warm_start(home, config)
    assert estimate_run(config, home, Rate()).seconds == 600 - 120
    other = resolve("gsm8k-mini", "cpu-demo", {"seed": 7})
    assert estimate_run(other, home, Rate()).seconds == 600  # its own is not kept


def test_a_cold_inference_test_and_one_from_the_cache_are_told_apart(home: Path) -> None:
    config = resolve("gsm8k-mini", "cpu-demo", {})
    (home / "inference_tests").mkdir(parents=True)
    write_json(home / "inference_tests" / "a.json", inference_test(config, 65.0, warm_start_seconds=45.0))
    assert estimate_test(config, home, Rate(), 48).seconds == 65.0
    keep_warm_start(home, config)
    assert estimate_test(config, home, Rate(), 48).seconds == 20.0
    assert estimate_test(config, home, Rate(), 48, starting=False).seconds is None  # another kind of test


def test_a_budget_that_is_too_small_for_all_steps_is_said_beforehand(home: Path) -> None:
    config = replay_config(grpo={"steps": 40}, budget={"max_hours": 0.1})
    assert too_long(config, home, Rate()) is None  # nobody knows
    earlier(home, "a", 30, config)
    said = too_long(config, home, Rate()) or ""
    assert "all 40 steps need about 30 min, and the run's budget ends it after 6 min, unfinished" in said
    assert estimate_run(config, home, Rate()).basis == said
    enough = replay_config(grpo={"steps": 40}, budget={"max_hours": 0.6})
    assert too_long(enough, home, Rate()) is None
    soon = datetime.fromtimestamp(time.time() + 60, UTC).isoformat()
    assert "unfinished" in (
        too_long(replay_config(grpo={"steps": 40}, budget={"deadline": soon}), home, Rate()) or ""
    )
    bounded = settings(budgets={"run": {"hours": 0.1}})
    assert budget_warning(replay_config(grpo={"steps": 40}), home, bounded) == said


def test_the_runs_budget_bounds_its_estimate(home: Path) -> None:
    config = replay_config(budget={"max_hours": 2.0, "max_dollars": 5.0})
    found = estimate_run(config, home, RATE)
    assert (found.seconds, found.dollars) == (3600, pytest.approx(5.0))
    assert "budget" in found.basis
    assert estimate_run(config, home, Rate()).seconds == 7200


@pytest.mark.parametrize(("rate", "dollars"), [(Rate(), 0.0), (Rate(4, 0.0), 0.0), (Rate(4, None), None)])
def test_what_costs_nothing_is_told_and_what_is_unknown_is_not_made_up(
    home: Path, rate: Rate, dollars: float | None
) -> None:
    assert estimate_run(replay_config(), home, rate).dollars == dollars


def test_an_inference_test_is_estimated_from_earlier_ones(home: Path) -> None:
    config = resolve("gsm8k-mini", "cpu-demo", {})
    usual = estimate_test(config, home, Rate(), 48)  # also before the first warm start
    assert usual.seconds
    assert 45 < usual.seconds < 46
    assert usual.basis == "a usual machine for cpu-demo; no earlier test of this kind"
    large = resolve("gsm8k", "single-gpu", {})
    assert estimate_test(large, home, Rate(), 48).seconds is None
    (home / "inference_tests").mkdir(parents=True)
    keep_warm_start(home, config)
    test = inference_test(config, 20.0)
    write_json(home / "inference_tests" / "a.json", test)
    write_json(home / "inference_tests" / "b.json", {"request": {}})
    assert estimate_test(config, home, Rate(), 24).seconds == 20.0
    assert estimate_test(config, home, Rate(), 96, dollars=0.5) == Estimate(
        "this computer", 40.0, 0.0, 0.5, "1 earlier test of this kind"
    )


def context(config: RunConfig) -> CallContext:
    made = CallContext(caller="chat", task_id="s", toolsets=("rl",))
    put_draft(made, Draft(config, config))
    return made


def estimate_of(tool: str, config: RunConfig, **arguments: object) -> Estimate:
    spec = find_tool(tool)
    assert spec
    assert spec.estimate
    return spec.estimate(context(config), arguments)


def test_the_tools_that_take_something_say_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = resolve("gsm8k-mini", "cpu-demo", {})
    assert estimate_of("rl_start_training", config).dollars == 0.0
    sizes = {"tasks": 3, "group_size": 16}
    assert estimate_of("rl_test_inference", config, models=None, **sizes).dollars == 0.0
    monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "x" * 20)
    paid = estimate_of("rl_test_inference", config, models=["openai/gpt-5"], **sizes).dollars
    assert paid is not None
    assert 0 < paid < 5
    assert estimate_of("rl_test_inference", config, models=["openai/no-such"], **sizes).dollars is None
    unknown = estimate_of("rl_test_inference", config, models=["openai/gpt-5"], **sizes)
    assert (unknown.seconds, unknown.basis) == (
        None,
        "no earlier test of this kind, and it is ended after 1 h",
    )
    free = ["starting checkpoint", "run:latest", "Qwen/Qwen2.5-0.5B-Instruct", "ollama/qwen3"]
    assert estimate_of("rl_test_inference", config, models=free, **sizes).dollars == 0.0


def test_gpus_are_counted_only_where_they_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "nvidia-smi"
    command.write_text("#!/bin/sh\nfor i in 1 2 3 4; do echo 'NVIDIA H200, 143771'; done\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    priced = settings(prices={"gpu_hour": 2.5})
    large = resolve("gsm8k", "single-gpu", {})
    assert rate_here(large, priced) == Rate(4, 2.5)
    assert rate_here(large, settings()) == Rate(4, None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,2")
    assert rate_here(large, priced).gpus == 2
    assert rate_here(resolve("gsm8k-mini", "cpu-demo", {}), priced) == Rate()
    assert rate_here(replay_config(profile="single-gpu"), priced) == Rate()


def test_what_the_budgets_do_not_allow_is_known_before_it_is_asked_for(home: Path) -> None:
    bounded = settings(budgets={"session": {"dollars": 5.0}, "day": {"gpu_hours": 3.0}})
    assert why_not(home, bounded, "s", Estimate(dollars=4.0, gpu_hours=2.0)) is None
    assert "this session's budget" in (why_not(home, bounded, "s", Estimate(dollars=6.0)) or "")
    assert "today's budget of 3 GPU hours" in (why_not(home, bounded, None, Estimate(gpu_hours=4.0)) or "")
    assert "not known" in (why_not(home, bounded, "s", Estimate(dollars=None)) or "")
    assert why_not(home, settings(), "s", Estimate(dollars=None)) is None
    priced = settings(budgets={"session": {"dollars": 5.0}}, prices={"gpu_hour": 2.5})
    assert why_not(home, priced, "s", Estimate(seconds=None, dollars=None)) is None
    assert why_not(home, priced, "s", Estimate(seconds=60, dollars=None))
    meter(home)[0].reserve("x/y", 2000, 0)
    assert "$2.00 reserved" in (why_not(home, bounded, "s", Estimate(dollars=4.0)) or "")
