"""Tools: runs at W&B, of whoever started them. Each call has a deadline that W&B cannot outlast."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tools.dispatcher import CallContext, Estimate, ToolError, tool
from tools.operations.wandb_text import bounded, bounded_run, differences, local_side

if TYPE_CHECKING:
    from rl_cli.tracking.errors import WandbError

READ_SECONDS = 40.0
HISTORY_SECONDS = 110.0


async def _ask(operation: str, arguments: dict[str, Any], seconds: float = READ_SECONDS) -> dict[str, Any]:
    from rl_cli.tracking.ask import ask_async
    from rl_cli.tracking.errors import WandbError

    try:
        return await ask_async(operation, arguments, seconds)
    except WandbError as error:
        raise _as_tool_error(error) from error


def _as_tool_error(error: WandbError) -> ToolError:
    return ToolError(f"wandb_{error.kind}", error.message, error.hint)


def _path(run: str) -> str:
    from rl_cli.runs.watched import wandb_path

    return wandb_path(run)


@tool(toolset="wandb", risk="read", deadline=60)
async def wandb_list_projects(
    entity: str | None = None, limit: Annotated[int, Field(ge=1, le=200)] = 50
) -> dict[str, Any]:
    """List W&B projects.

    Args:
        entity: User or team; default: the key's own.
        limit: At most this many.
    """
    found = await _ask("projects", {"entity": entity, "limit": limit})
    return {"projects": bounded(found["projects"])}


@tool(toolset="wandb", risk="read", deadline=60)
async def wandb_list_runs(
    project: str,
    state: Literal["running", "finished", "failed", "crashed", "killed"] | None = None,
    name: str | None = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> dict[str, Any]:
    """List runs of a W&B project, newest first.

    Args:
        project: entity/project, or a project of the key's own entity.
        state: Only those.
        name: Only those whose display name contains this.
        limit: At most this many.
    """
    import re

    entity, _, project = project.rpartition("/")
    filters: dict[str, Any] = {"state": state} if state else {}
    if name:
        filters["display_name"] = {"$regex": re.escape(name)}
    arguments = {"entity": entity or None, "project": project, "filters": filters, "limit": limit}
    found = await _ask("runs", arguments)
    runs = [bounded_run(run, figures=6) for run in found["runs"]]
    return {"runs": runs, "total": found["total"]}


@tool(toolset="wandb", risk="read", deadline=60)
async def wandb_get_run(run: str) -> dict[str, Any]:
    """State, config and summary of a W&B run; `here` is what this machine knows of the same run.

    Args:
        run: entity/project/run-id.
    """
    path = _path(run)
    found = await _ask("run", {"path": path})
    here = await asyncio.to_thread(local_side, path, found)
    return {
        **bounded_run(found, figures=100),
        "config": bounded(found["config"]),
        "notes": bounded(found["notes"]),
        **here,
    }


@tool(toolset="wandb", risk="read", deadline=150)
async def wandb_get_history(
    run: str,
    metrics: Annotated[list[str], Field(min_length=1, max_length=20)],
    points: Annotated[int, Field(ge=2, le=200)] = 20,
) -> dict[str, Any]:
    """Metrics of a W&B run over all of its steps: first, last, min, max, as [step, value].

    Those are exact unless `exact` is false; `points` is a thinned series.

    Args:
        run: entity/project/run-id.
        metrics: Names as the run logs them.
        points: Length of the series.
    """
    from rl_cli.core.errors import nearest

    arguments = {"path": _path(run), "keys": metrics, "points": points, "seconds": HISTORY_SECONDS - 20}
    found = await _ask("history", arguments, HISTORY_SECONDS)
    result: dict[str, Any] = {name: found[name] for name in ("state", "rows", "axis", "exact")}
    if found["why_not"]:
        result["why_not_exact"] = found["why_not"]
    missing = [name for name in metrics if not found["metrics"][name]["count"]]
    result["metrics"] = {name: found["metrics"][name] for name in metrics if name not in missing}
    if missing:
        result["never_logged"] = {
            name: nearest(name, found["names"]) or found["names"][:10] for name in missing
        }
    if found["why_not"] and not found["rows"]:
        result["summary"] = bounded(found["summary"])
    return result


@tool(toolset="wandb", risk="read", deadline=60)
async def wandb_get_system_metrics(run: str) -> dict[str, Any]:
    """GPU, memory and other system figures of a W&B run; sampled by W&B.

    Args:
        run: entity/project/run-id.
    """
    found = await _ask("system_metrics", {"path": _path(run), "points": 8})
    return {
        "state": found["state"],
        "exact": False,
        "newest": bounded(found["newest"]),
        **_few(found["metrics"]),
    }


@tool(toolset="wandb", risk="read", deadline=120)
async def wandb_compare_runs(
    runs: Annotated[list[str], Field(min_length=2, max_length=6)],
) -> dict[str, Any]:
    """Compare W&B runs: state, where configs differ, last figures.

    Args:
        runs: entity/project/run-id of each.
    """
    from rl_cli.tracking.ask import ask_all
    from rl_cli.tracking.errors import WandbError

    paths = [_path(run) for run in runs]
    found = await ask_all([("run", {"path": path}) for path in paths], 2 * READ_SECONDS)
    known = [one for one in found if not isinstance(one, WandbError)]
    failed = {path: str(one) for path, one in zip(paths, found, strict=True) if isinstance(one, WandbError)}
    if not known:
        raise _as_tool_error(next(one for one in found if isinstance(one, WandbError)))
    return {
        "runs": [bounded_run(run, figures=30) for run in known],
        "config_differs": differences([run["config"] for run in known]),
        **({"unknown": failed} if failed else {}),
    }


def _stop_estimate(context: CallContext, arguments: dict[str, Any]) -> Estimate:
    return Estimate(
        what="ask W&B to stop a run that somebody may need", scope={"run": _path(arguments["run"])}
    )


@tool(toolset="wandb", risk="spend", deadline=180, exclusive=True, estimate=_stop_estimate)
async def wandb_stop_run(run: str) -> dict[str, Any]:
    """Ask W&B to stop a run. A request: the run hears it within about 45 s if it logs online, else never.

    Args:
        run: entity/project/run-id.
    """
    from rl_cli.tracking.errors import WandbError
    from rl_cli.tracking.stopping import request_stop

    path = _path(run)
    own = await asyncio.to_thread(local_side, path, None)
    if own:
        raise ToolError("local_run", f"{path} is trained here", "stop it with rl_stop_training")
    try:
        return await request_stop(path)
    except WandbError as error:
        raise _as_tool_error(error) from error


def _few(metrics: dict[str, Any]) -> dict[str, Any]:
    names = list(metrics)[:40]
    return {"metrics": {name: metrics[name] for name in names}, "left_out": len(metrics) - len(names)}
