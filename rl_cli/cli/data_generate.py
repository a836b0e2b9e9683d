"""`rl-cli data generate|resume`: asks a model all of an input, and keeps what it answers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rl_cli.cli.app import JsonOption, YesOption
from rl_cli.cli.ask import AddressOption
from rl_cli.cli.event_lines import counted
from rl_cli.cli.output import nothing_on_stdout, print_fields, print_json, say
from rl_cli.core.errors import BadUsage, Refused

if TYPE_CHECKING:
    from rl_cli.data.batch.config import BatchConfig
    from rl_cli.data.batch_runner import Ended

OPERATOR = "builtin/operator"


def _option(names: str, text: str, **more: Any) -> Any:
    return typer.Option(*names.split(), help=text, show_default=False, **more)


def generate(
    context: typer.Context,
    input_: Annotated[
        str | None, _option("--input", "JSONL, JSON, CSV or Parquet file, or a Hugging Face dataset.")
    ] = None,
    name: Annotated[str | None, _option("--name", "Of the batch, and its folder.")] = None,
    config: Annotated[
        Path | None, _option("--config", "YAML file with the settings; flags go before it.", metavar="FILE")
    ] = None,
    model: Annotated[str | None, _option("--model", "Who is asked: provider/name.")] = None,
    base_url: AddressOption = None,
    agent: Annotated[str | None, _option("--agent", "loop (with toolsets), or terminal.")] = None,
    agent_image: Annotated[str | None, _option("--agent-image", "With terminal: its image.")] = None,
    toolsets: Annotated[str | None, _option("--toolsets", "What is offered: a,b; '' for nothing.")] = None,
    distribution: Annotated[
        str | None, _option("--distribution", "Toolsets drawn for each item (rl-cli data distributions).")
    ] = None,
    sandbox: Annotated[str | None, _option("--sandbox", "Where commands run: bubblewrap, docker ...")] = None,
    image: Annotated[str | None, _option("--image", "What the sandbox starts from.")] = None,
    network: Annotated[bool | None, _option("--network/--no-network", "For commands.")] = None,
    concurrency: Annotated[int | None, _option("--concurrency", "Most samples in flight.")] = None,
    samples: Annotated[int | None, _option("--samples", "Answers to each item.")] = None,
    best_of: Annotated[int | None, _option("--best-of", "Of so many answers, keep the best.")] = None,
    target: Annotated[int | None, _option("--target", "Ask until so many answers reach --min-score.")] = None,
    max_samples_per_prompt: Annotated[
        int | None, _option("--max-samples-per-prompt", "With --target: at most so many.")
    ] = None,
    min_score: Annotated[float | None, _option("--min-score", "Discard answers below it.")] = None,
    score: Annotated[
        str | None, _option("--score", "The environment that judges each answer.", metavar="ENV")
    ] = None,
    eval_every: Annotated[int | None, _option("--eval-every", "Evaluate after so many samples.")] = None,
    eval_held_out: Annotated[int | None, _option("--eval-held-out", "On so many held-out items.")] = None,
    max_turns: Annotated[int | None, _option("--max-turns", "Completions of one sample.")] = None,
    max_tokens: Annotated[int | None, _option("--max-tokens", "Sampled tokens of one sample.")] = None,
    item_seconds: Annotated[float | None, _option("--item-seconds", "How long one sample may take.")] = None,
    max_samples: Annotated[int | None, _option("--max-samples", "Take only the first N items.")] = None,
    seed: Annotated[int | None, _option("--seed", "Of draws and sampling.")] = None,
    temperature: Annotated[float | None, _option("--temperature", "Of sampling.")] = None,
    top_p: Annotated[float | None, _option("--top-p", "Of sampling.")] = None,
    max_output_tokens: Annotated[int | None, _option("--max-output-tokens", "Of one completion.")] = None,
    reasoning_effort: Annotated[str | None, _option("--reasoning-effort", "low, medium, high ...")] = None,
    system_prompt: Annotated[
        str | None, _option("--system-prompt", "Said to the model, not stored in rows.", metavar="TEXT")
    ] = None,
    give_up_after: Annotated[
        int | None, _option("--give-up-after", "Stop after so many failures in a row.")
    ] = None,
    executor: Annotated[str | None, _option("--executor", "asyncio, or ray.")] = None,
    ray_address: Annotated[str | None, _option("--ray-address", "An existing cluster.")] = None,
    redact: Annotated[bool | None, _option("--redact/--no-redact", "Mask secrets in rows.")] = None,
    dry_run: Annotated[bool, _option("--dry-run", "Say what would be asked, and what it costs.")] = False,
    json_: JsonOption = False,
    yes: YesOption = False,
) -> None:
    """Ask a model every row of an input, with tools, and keep the conversations as training data.

    Beginning it again with the same settings goes on where it stopped: nothing that was paid for is asked
    again. Ctrl-C lets what is in flight come to its end; a second one stops at once.
    """
    from rl_cli.data.batch.config_file import load_config

    flags = {field: context.params[field] for field in FIELDS}
    flags |= {"input": input_, "sandbox.kind": sandbox, "sandbox.image": image, "sandbox.network": network}
    if toolsets is not None:
        flags["toolsets"] = [part.strip() for part in toolsets.split(",") if part.strip()]
    found = load_config(config, flags)
    if dry_run:
        _tell_plan(found, json_)
        return
    _run(_with_model(found), yes, json_)


def resume(
    name: Annotated[str, typer.Argument(help="The batch.", show_default=False)],
    concurrency: Annotated[int | None, _option("--concurrency", "Most samples in flight.")] = None,
    retry_failed: Annotated[
        bool, _option("--retry-failed", "Ask samples that have failed once more; their records stay.")
    ] = False,
    json_: JsonOption = False,
    yes: YesOption = False,
) -> None:
    """Go on with a batch: with the settings that it was begun with, as far as it was last to go.

    A failed sample is final unless --retry-failed asks it again: then what it comes to takes its place.
    """
    from rl_cli.data.batch.config_file import checked
    from rl_cli.data.batch.folder import find_batch

    folder = find_batch(name)
    found = folder.config()
    latest = {"max_samples": folder.state().get("max_samples", found.max_samples)}
    if concurrency is not None:
        latest["concurrency"] = concurrency
    _run(checked({**found.model_dump(), **latest}), yes, json_, retry_failed)


# fmt: off
FIELDS = (
    "name", "model", "base_url", "agent", "agent_image", "distribution", "concurrency", "samples",
    "best_of", "target", "max_samples_per_prompt", "min_score", "score", "eval_every", "eval_held_out",
    "max_turns", "max_tokens", "item_seconds", "max_samples", "seed", "temperature", "top_p",
    "max_output_tokens", "reasoning_effort", "system_prompt", "give_up_after", "executor",
    "ray_address", "redact",
)
# fmt: on
"""Flags that are called as the settings that they set."""


def _with_model(config: BatchConfig) -> BatchConfig:
    """The settings with the model that answers, so that they are kept with the batch."""
    from rl_cli.agent.models import choose_model
    from rl_cli.core.settings import load_settings

    if config.model is None:
        choice = choose_model(load_settings().model)
        say(choice.notice, error=True)
        config = config.model_copy(update={"model": choice.name})
    if config.model == OPERATOR:
        raise BadUsage(f"{OPERATOR} makes no training data", "give --model provider/name, or set a key")
    return config


def _run(config: BatchConfig, yes: bool, json_: bool, retry_failed: bool = False) -> None:
    from rl_cli.cli.batch_display import display
    from rl_cli.data.batch.filters import Filters
    from rl_cli.data.batch.folder import batch_folder
    from rl_cli.data.batch.merge import merge
    from rl_cli.data.batch_runner import run_batch
    from rl_cli.data.generation.plan import plan_of

    if not yes and sys.stdin.isatty():
        plan = plan_of(config, retry_failed)
        if plan.samples and plan.dollars != 0 and not typer.confirm(f"{plan.sentence()} Begin?", err=True):
            raise Refused("not begun")
    folder = batch_folder(config.name)  # before an environment's code runs, which may change RL_CLI_HOME
    with display() as shown, nothing_on_stdout():
        ended = run_batch(config, shown.show, shown.bad_row, retry_failed=retry_failed)
        shown.flush(ended.progress)
    try:
        statistics = merge(folder, Filters(min_score=config.min_score))
    finally:  # how it ended is worth telling also where the disk is too full for a merge
        _tell_end(config.name, ended, folder.path, retry_failed)
    if discarded := statistics["discarded"]:
        why = ", ".join(f"{count} {reason}" for reason, count in discarded.items())
        say(f"{counted(statistics['merged'], 'rows')} kept, discarded: {why}", error=True)
    if json_:
        print_json({**statistics, "state": ended.state, "reason": ended.reason, "dir": str(folder.path)})
    if ended.exit_code:
        raise typer.Exit(ended.exit_code)


def _tell_end(name: str, ended: Ended, path: Path, retry_failed: bool) -> None:
    progress = ended.progress
    counts = f"{progress.done} done, {progress.failed.total()} failed"
    if progress.bad_rows:
        counts += f", {counted(progress.bad_rows, 'rows')} of the input passed over"
    say(f"{name}: {ended.state}, {counts}: {path}", error=True)
    if ended.exit_code:
        again = f"rl-cli data resume {name}"
        if ended.state != "finished":
            go_on = f"{again} goes on"
        elif retry_failed and not any(n for reason, n in progress.failed.items() if reason != "earlier"):
            go_on = "no more asked for: of items that the input no longer has, or beyond --max-samples"
        else:
            go_on = f"{again} --retry-failed asks again"
        say(f"{ended.reason} ({go_on})", error=True)


def _tell_plan(config: BatchConfig, json_: bool) -> None:
    from environments.catalogue import find_environment
    from rl_cli.core.settings import environments_folder
    from rl_cli.data.batch_runner import check_start
    from rl_cli.data.generation.plan import plan_of
    from rl_cli.data.jobs.wanted import check_names

    trouble: BadUsage | None = None
    if config.score:
        find_environment(config.score, environments_folder())
    try:
        config = _with_model(config)
        check_names(config)
        check_start(config)
    except BadUsage as error:  # what it would ask can be told all the same
        trouble = error
    plan = plan_of(config)
    if json_:
        print_json(plan.to_dict())
    else:
        print_fields(plan.fields())
    if trouble:
        say(f"it cannot begin yet: {trouble}", error=True)
