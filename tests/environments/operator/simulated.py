"""A small stand-in for the rl_ tools: the JSON they give, without training anything."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from environments.policies.base import FinishReason, Sampling
from environments.policies.operator.policy import OperatorPolicy
from rl_cli.core.messages import Message, tool_result, user

NAMES = (
    "rl_list_environments rl_describe_environment rl_select_environment rl_get_current_config rl_edit_config "
    "rl_test_inference rl_start_training rl_check_status rl_stop_training rl_get_results rl_list_runs "
    "rl_resume_training wandb_list_projects wandb_list_runs wandb_compare_runs wandb_stop_run "
    "data_generate data_status data_stop data_merge data_compress data_export data_stats data_show_samples"
)
TOOLS: list[dict[str, Any]] = [{"type": "function", "function": {"name": name}} for name in NAMES.split()]

ENVIRONMENTS = [
    {
        "name": "gsm8k",
        "description": "Grade-school word problems of openai/gsm8k.",
        "profiles": ["single-gpu"],
        "trainable_here": False,
        "why_not": "profile single-gpu needs a GPU, and this machine has none",
        "stand_in": "gsm8k-mini",
    },
    {
        "name": "gsm8k-mini",
        "description": "Endless procedural word problems in the GSM8K format.",
        "profiles": ["cpu-demo"],
        "trainable_here": True,
        "why_not": None,
        "stand_in": None,
    },
    {
        "name": "tool-math",
        "description": "Arithmetic with a calculator tool.",
        "profiles": ["cpu-demo"],
        "trainable_here": True,
        "why_not": None,
        "stand_in": None,
    },
]
CONFIG = {
    "environment.name": "gsm8k-mini",
    "seed": 0,
    "model.name": "tiny",
    "grpo.steps": 40,
    "grpo.batch_size": 256,
    "grpo.group_size": 8,
    "grpo.learning_rate": 0.0003,
}
EVAL = {"n": 400, "untrained": 0.0, "initial": 0.2175, "best": 0.82, "final": 0.8125}
RUN_ID = "20260102-030405-gsm8k-mini"
PROGRESS = {
    "phase": "grpo",
    "step": 12,
    "total_steps": 40,
    "eta_seconds": 31.5,
    "reward_first": 0.213,
    "reward_last": 0.547,
    "reward_best": 0.561,
    "signal_share": 0.84,
    "steps_since_best": 1,
}


def error(kind: str, message: str, hint: str | None = None) -> dict[str, Any]:
    return {"ok": False, "error": {"type": kind, "message": message, **({"hint": hint} if hint else {})}}


def run(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "id": RUN_ID,
        "state": "running",
        "reason": None,
        "environment": "gsm8k-mini",
        "profile": "cpu-demo",
        "backend": "trl",
        "model": "tiny",
        "step": 12,
        "total_steps": 40,
        "started": "2026-01-02T03:04:05.000Z",
        "ended": None,
        "wandb_url": None,
        "eval": {"n": 400, "untrained": None, "initial": None, "best": None, "final": None},
        "last_metrics": {},
        "alerts": [],
        "dir": f"/home/me/runs/{RUN_ID}",
    }
    return base | changes


def check(why: str = "due", alerts: list[dict[str, Any]] | None = None, **progress: Any) -> dict[str, Any]:
    """A result of rl_check_status; `state` and `reason` go to the run, the rest to its progress."""
    on_run = {key: progress.pop(key) for key in ("state", "reason") if key in progress}
    shown = PROGRESS | progress
    return {
        "ok": True,
        "why": why,
        "run": run(step=shown["step"], alerts=alerts or [], **on_run),
        "progress": shown,
        "recent": [],
        "alerts": alerts or [],
        "next_check_seconds": 15.0,
    }


def end(state: str = "finished", reason: str = "all 40 steps are done", **progress: Any) -> dict[str, Any]:
    return check("end", state=state, reason=reason, **({"step": 40} | progress))


@dataclass
class Tools:
    """`checks` are the successive results of rl_check_status; `answers` replaces a tool's result, or the
    successive ones if it is a list."""

    checks: list[dict[str, Any]] = field(default_factory=lambda: [check(), end()])
    answers: dict[str, Any] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)
    paired: dict[str, Any] = field(default_factory=lambda: {"why_not": "the single answers were not kept"})
    selected: str = ""
    config: dict[str, Any] = field(default_factory=lambda: dict(CONFIG))
    changed: dict[str, Any] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    last_run: dict[str, Any] = field(default_factory=run)

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((name, arguments))
        planned = self.answers.get(name)
        if isinstance(planned, list):
            planned = planned.pop(0) if planned else None
        return planned if planned is not None else getattr(self, f"_{name}")(**arguments)

    @property
    def called(self) -> list[str]:
        return [name.removeprefix("rl_") for name, _ in self.calls]

    def arguments(self, name: str) -> list[dict[str, Any]]:
        return [arguments for called, arguments in self.calls if called == name]

    def _rl_list_environments(self) -> dict[str, Any]:
        return {
            "ok": True,
            "environments": ENVIRONMENTS,
            "machine": {"cpus": 2, "memory_gb": 8.0, "gpus": []},
        }

    def _rl_describe_environment(self, name: str) -> dict[str, Any]:
        row = next((row for row in ENVIRONMENTS if row["name"] == name), None)
        if row is None:
            return error("bad_usage", f"unknown environment: {name}")
        return {
            "ok": True,
            **row,
            "sizes": {"train": None, "validation": None, "test": 1319}
            if name == "gsm8k-mini"
            else {"train": 7473},
            "options_schema": {},
            "toolsets": ["math"] if name == "tool-math" else [],
            "reward": "1 for the right number, else 0.",
            "example": {
                "task_id": "t",
                "messages": [{"role": "user", "content": "Ann has 3 apples. How many?"}],
            },
            "has_warm_start": True,
            "how_to_train_it": "use a machine with one GPU and the profile single-gpu",
        }

    def _rl_select_environment(self, name: str, profile: str | None = None) -> dict[str, Any]:
        row = next(row for row in ENVIRONMENTS if row["name"] == name)
        if not row["trainable_here"]:
            return error("cannot_train_here", str(row["why_not"]), f"select {row['stand_in']}, or use a GPU")
        self.selected, self.config, self.changed = name, CONFIG | {"environment.name": name}, {}
        return {
            "ok": True,
            "environment": name,
            "profile": profile or "cpu-demo",
            "backend": "trl",
            "config": self.config,
            "locked": {"model.dtype": "the CPU has no fast bfloat16"},
            "note": None,
        }

    def _rl_get_current_config(self) -> dict[str, Any]:
        if not self.selected:
            return error("bad_usage", "no environment is selected", "call rl_select_environment first")
        return {
            "ok": True,
            "environment": self.selected,
            "profile": "cpu-demo",
            "config": self.config,
            "changed": self.changed,
            "locked": {},
        }

    def _rl_edit_config(self, changes: dict[str, Any]) -> dict[str, Any]:
        report = {name: {"from": self.config.get(name), "to": value} for name, value in changes.items()}
        self.config, self.changed = self.config | changes, self.changed | changes
        return {"ok": True, "changed": report}

    def _rl_test_inference(self, models: None = None, tasks: int = 3, group_size: int = 16) -> dict[str, Any]:
        return inference(tasks=tasks, group_size=group_size)

    def _rl_start_training(self) -> dict[str, Any]:
        return {
            "ok": True,
            "run_id": RUN_ID,
            "dir": f"/home/me/runs/{RUN_ID}",
            "state": "running",
            "total_steps": self.config["grpo.steps"],
            "first_check_seconds": 15.0,
            "wandb": "offline",
        }

    def _rl_resume_training(
        self, run_id: str | None = None, changes: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        return {
            "ok": True,
            "run_id": run_id or RUN_ID,
            "state": "running",
            "from_step": 10,
            "total_steps": 40,
            "attempt": 2,
            "how": "goes on from step 10 (attempt 2)",
            "notes": [],
        }

    def _wandb_list_projects(self) -> dict[str, Any]:
        return {"ok": True, "projects": [{"entity": "acme", "name": "math", "created": "2026-01-02"}]}

    def _wandb_list_runs(self, project: str) -> dict[str, Any]:
        return {"ok": True, "runs": [remote(f"{project}/a1"), remote(f"{project}/b2")], "total": 2}

    def _wandb_compare_runs(self, runs: list[str]) -> dict[str, Any]:
        differs = {"lr": [0.001, 0.0001], "model": ["tiny", None]}
        return {"ok": True, "runs": [remote(path) for path in runs], "config_differs": differs}

    def _wandb_stop_run(self, run: str) -> dict[str, Any]:
        return {"ok": True, "requested": True, "state": "running", "note": "it stops within about 45 s"}

    def _rl_check_status(self, run_id: str | None, wait: bool = False, decision: str = "") -> dict[str, Any]:
        result = self.checks.pop(0) if len(self.checks) > 1 else self.checks[0]
        if result.get("ok"):
            self.last_run = result["run"]
        return result

    def _rl_stop_training(self, run_id: str | None, reason: str) -> dict[str, Any]:
        return {"ok": True, "run_id": run_id or RUN_ID, "state": "stopping", "step": self.last_run["step"]}

    def _rl_get_results(self, run_id: str | None, against: str | None = None) -> dict[str, Any]:
        known = next((row for row in self.runs if row["id"] == run_id), self.last_run)
        return {
            "ok": True,
            **({"paired": {"first": against, "second": run_id, **self.paired}} if against else {}),
            "run": known,
            "eval": known["eval"] if self.runs else EVAL,
            "gain": 0.595,
            "report": f"/home/me/runs/{RUN_ID}/report.html",
            "checkpoint": f"/home/me/runs/{RUN_ID}/checkpoints/step-30",
            "checkpoint_last": f"/home/me/runs/{RUN_ID}/checkpoints/step-40",
            "checkpoints": [
                {
                    "what": "best on validation",
                    "step": 30,
                    "accuracy": EVAL["best"],
                    "path": f"/home/me/runs/{RUN_ID}/checkpoints/step-30",
                },
                {
                    "what": "last",
                    "step": 40,
                    "accuracy": EVAL["final"],
                    "path": f"/home/me/runs/{RUN_ID}/checkpoints/step-40",
                },
            ],
            "samples": [],
            "notes": ["The warm start was deliberately imperfect: 52 % of its solutions stop too early."],
        }

    def _rl_list_runs(self, limit: int = 20) -> dict[str, Any]:
        return {"ok": True, "runs": self.runs}


def remote(path: str) -> dict[str, Any]:
    """A run as the tools for W&B describe it."""
    summary = {"reward/mean": 0.61, "loss": 0.02, "note": "text", "_step": 40}
    return {"path": path, "name": "brave-sun-3", "state": "running", "last_step": 40, "summary": summary}


def inference(**changes: Any) -> dict[str, Any]:
    tasks, group_size = changes.pop("tasks", 3), changes.pop("group_size", 16)
    row = {
        "model": "starting checkpoint",
        "accuracy": 0.2292,
        "tasks": tasks,
        "rollouts": tasks * group_size,
        "groups_without_signal": 0.3333,
        "parse_failures": 0.0417,
        "errors": {},
        "mean_tokens": 14.2,
        "samples": [],
    }
    return {"ok": True, "file": "/home/me/tests/1.json", "results": [row | changes], "seconds": 2.1}


@dataclass
class Played:
    messages: list[Message]
    answer: str
    said: list[str]
    """The texts that came with tool calls."""
    declined: bool = False
    """The answer says that what was asked for was not done."""


def play(request: str, tools: Tools, history: list[Message] | None = None, limit: int = 60) -> Played:
    """Plays one request to its answer, as the loop does."""
    return asyncio.run(_play(request, tools, history or [], limit))


async def _play(request: str, tools: Tools, history: list[Message], limit: int) -> Played:
    said: list[str] = []
    new = [*history, user(request)]
    messages = list(new)
    async with OperatorPolicy().open("chat", TOOLS, Sampling()) as session:
        for _ in range(limit):
            completion = await session.complete(new)
            messages.append(completion.message)
            calls = completion.message.get("tool_calls") or []
            if not calls:
                assert completion.finish_reason in (FinishReason.STOP, FinishReason.DECLINED)
                declined = completion.finish_reason is FinishReason.DECLINED
                return Played(messages, completion.message["content"] or "", said, declined)
            assert completion.finish_reason is FinishReason.TOOL_CALLS
            said.append(completion.message["content"] or "")
            new = []
            for call in calls:
                arguments = json.loads(call["function"]["arguments"])
                new.append(tool_result(call, json.dumps(tools.call(call["function"]["name"], arguments))))
            messages += new
    raise AssertionError(f"no answer after {limit} turns: {tools.called}")
