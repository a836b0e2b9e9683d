"""Child process of inference_test: `python -P -m rl_cli.training.inference_worker REQUEST_FILE`.

Writes one JSON object per line to stdout: progress, and at the end {"kind": "outcome", "results" or "error"}.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

from environments.base import Environment, Rollout, ScoredGroup
from environments.catalogue import load_environment
from environments.policies.base import Policy
from rl_cli.config.tree import RunConfig
from rl_cli.config.warm_start import STARTING
from rl_cli.core.errors import RlCliError
from rl_cli.core.own_process import drop_keys, redact_output
from rl_cli.core.redaction import redacted_json
from rl_cli.spending.metered import metered
from rl_cli.training.inference_test import WARM_START, keys_of, read_request
from rl_cli.training.process import prepare_process

SAMPLES = 3
FORMAT_PARTS = ("format", "marker")
"""Parts of a reward that are 0 where the answer could not be read."""
Emit = Callable[..., None]


def main(argv: list[str]) -> int:
    redact_output()
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")

    def emit(kind: str, **fields: Any) -> None:
        print(redacted_json({"kind": kind, **fields}), file=lines, flush=True)

    with contextlib.redirect_stdout(sys.stderr):  # what libraries print is no progress
        try:
            request = read_request(Path(argv[0]))
            emit("outcome", results=answer(request, emit))
            return 0
        except RlCliError as error:
            failure = {"message": error.message, "hint": error.hint, "exit_code": error.exit_code}
        except Exception as error:  # whatever it is, the caller must be told
            traceback.print_exc()
            message = f"the inference test failed: {type(error).__name__}: {error}"
            failure = {"message": message, "hint": None, "exit_code": 1}
        emit("outcome", error=failure)
        return 1


def answer(request: dict[str, Any], emit: Emit) -> list[dict[str, Any]]:
    """Tests each model of a request; what they need is loaded once for each."""
    config = RunConfig.model_validate(request["config"])
    drop_keys(keep=keys_of(request["models"]))
    prepare_process()
    import transformers

    from rl_cli.training.evaluation import Rollouts

    section = config.environment
    env = load_environment(section.name, section.options, section.folder)
    results = []
    for model in request["models"]:
        policy = _policy(model, env, config, Path(request["home"]), emit)
        policy = metered(policy, request["home"], request.get("session") or "inference-test")
        emit("phase", name=f"rollouts of {model}")
        transformers.set_seed(config.seed)
        with Rollouts(env, policy, config.grpo, config.seed) as rollouts:
            tasks = rollouts.tasks("validation", request["tasks"])
            results.append({"model": model, **summarise(rollouts.groups(tasks, request["group_size"]))})
    return results


def summarise(groups: list[ScoredGroup]) -> dict[str, Any]:
    """The figures of one model's groups, and a few of its outputs."""
    from rl_cli.training.rollout_rows import pick_samples, sample_fields

    rollouts = [rollout for group in groups for rollout in group.rollouts]
    judged = [rollout for rollout in rollouts if rollout.reward]
    shown = ("task_id", "prompt", "completion", "reward")
    return {
        "accuracy": fmean(_correct(rollout) for rollout in judged) if judged else None,
        "tasks": len(groups),
        "rollouts": len(rollouts),
        "groups_without_signal": fmean(float(not group.has_signal) for group in groups),
        "parse_failures": fmean(float(_unreadable(rollout)) for rollout in judged) if judged else 0.0,
        "errors": dict(Counter(rollout.error.kind for rollout in rollouts if rollout.error)),
        "mean_tokens": fmean(r.result.usage.output_tokens for r in judged if r.result) if judged else None,
        "samples": [
            {k: v for k, v in sample_fields(r).items() if k in shown} for r in pick_samples(groups, SAMPLES)
        ],
        "first_error": next((r.error.message for r in rollouts if r.error), None),
    }


def _correct(rollout: Rollout) -> float:
    assert rollout.reward
    return rollout.reward.parts.get("correct", rollout.reward.value)


def _unreadable(rollout: Rollout) -> bool:
    """A tool call that was begun and could not be read, or an answer without its mark."""
    assert rollout.reward
    assert rollout.result
    marks = [rollout.reward.parts[part] for part in FORMAT_PARTS if part in rollout.reward.parts]
    return bool(rollout.result.call_errors) or 0.0 in marks


def _policy(model: str, env: Environment, config: RunConfig, home: Path, emit: Emit) -> Policy:
    from rl_cli.agent.models import is_provider, resolve_policy
    from rl_cli.training.models import load_checkpoint, load_pretrained, load_tiny, make_policy

    provider, _, rest = model.partition("/")
    if model == STARTING:
        if config.model.name == "tiny":
            return make_policy(load_tiny(_warm_start(env, config, home, emit)), model)
        return make_policy(load_pretrained(config.model, train=False), model)
    if model.startswith("run:"):
        return make_policy(load_checkpoint(*run_checkpoint(home, model.removeprefix("run:"))), model)
    if Path(model).is_dir():
        return make_policy(load_checkpoint(Path(model), config.model), model)
    if rest and is_provider(provider):
        return resolve_policy(model)
    return make_policy(
        load_pretrained(config.model.model_copy(update={"name": model, "lora": None}), False), model
    )


def run_checkpoint(home: Path, name: str) -> tuple[Path, Any]:
    """The best checkpoint of a run (the newest where none was validated), and the run's model section.

    Raises:
        BadUsage: No such run, or no checkpoint in it.
    """
    from rl_cli.core.errors import BadUsage
    from rl_cli.runs.store import find_run

    run = find_run(home, name)
    events = run.events()
    saved = {event["step"]: Path(event["path"]) for event in events if event["kind"] == "checkpoint"}
    saved = {step: path for step, path in saved.items() if path.is_dir()}
    if not saved:
        raise BadUsage(
            f"the run {run.id} has no checkpoint",
            "its first one is written after grpo.checkpoint_every steps",
        )
    validated = [
        e for e in events if e["kind"] == "evaluation" and e["which"] == "validation" and e["step"] in saved
    ]
    best = max(validated, key=lambda event: (event["accuracy"], event["step"]), default=None)
    return saved[best["step"] if best else max(saved)], run.config().model


def _warm_start(env: Environment, config: RunConfig, home: Path, emit: Emit) -> Path:
    from rl_cli.training.warm_start import Watcher, obtain

    watcher = Watcher(
        phase=lambda name: emit("phase", name=WARM_START),
        figures=lambda step, row: emit(
            "metrics", row={"phase": "sft", "step": step, **row}, total_steps=config.sft.max_steps
        ),
        event=emit,
        should_stop=lambda: False,
    )
    return obtain(env, config, home, watcher).path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
