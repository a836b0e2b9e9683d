"""What comes from W&B, bounded: names, notes and configs are text that anybody may have written."""

from __future__ import annotations

from typing import Any

from rl_cli.core.cuts import one_line

LONGEST_TEXT = 300
MOST_ITEMS = 100
DEEPEST = 4


def bounded(value: Any, depth: int = 0) -> Any:
    """`value` with at most MOST_ITEMS items on each level, short texts and no more than DEEPEST levels."""
    if isinstance(value, str):
        return one_line(value, LONGEST_TEXT)
    if isinstance(value, dict | list) and depth >= DEEPEST:
        return f"({len(value)} more)" if value else None
    if isinstance(value, dict):
        names = list(value)[:MOST_ITEMS]
        kept = {one_line(str(name), 120): bounded(value[name], depth + 1) for name in names}
        return {**kept, "...": f"{len(value) - len(names)} more"} if len(value) > len(names) else kept
    if isinstance(value, list):
        kept_items = [bounded(item, depth + 1) for item in value[:MOST_ITEMS]]
        return [*kept_items, f"... {len(value) - MOST_ITEMS} more"] if len(value) > MOST_ITEMS else kept_items
    return value


def bounded_run(run: dict[str, Any], figures: int) -> dict[str, Any]:
    """A run as `rl_cli.tracking.sdk` describes it, with so many figures of its summary."""
    summary = run["summary"]
    shown = {name: summary[name] for name in list(summary)[:figures]}
    kept = ("path", "name", "state", "url", "created", "heartbeat", "last_step", "user", "tags")
    described = {name: bounded(run[name]) for name in kept if run.get(name) not in (None, [])}
    return {**described, "summary": bounded(shown)}


def differences(configs: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Dotted names whose values differ -> the values, in the order of the configs."""
    flat = [_flat(config) for config in configs]
    names = list(dict.fromkeys(name for one in flat for name in one))
    found: dict[str, list[Any]] = {}
    for name in names:
        values = [one.get(name) for one in flat]
        if any(value != values[0] for value in values) and len(found) < MOST_ITEMS:
            found[one_line(name, 120)] = [bounded(value) for value in values]
    return found


def local_side(path: str, remote: dict[str, Any] | None) -> dict[str, Any]:
    """What this machine knows of the same run: {} if it is none of ours, else "here", and how they differ.

    Args:
        path: entity/project/run.
        remote: The run as W&B describes it, if it was asked.
    """
    from rl_cli.core.settings import home
    from rl_cli.runs.state_file import WATCHED
    from rl_cli.runs.store import RunDir, runs_folder, settle

    folder = runs_folder(home()) / path.rsplit("/", 1)[1]
    if not (folder / "state.json").is_file() or (state := settle(RunDir(folder))).get("backend") == WATCHED:
        return {}
    here = {
        "run_id": folder.name,
        "state": state["state"],
        "reason": state.get("reason"),
        "step": state["step"],
    }
    if remote is None or _agree(remote["state"], state["state"]):
        return {"here": here}
    said = (
        f"W&B says {remote['state']}; here it is {state['state']} (step {state['step']}). What is here counts"
    )
    return {"here": here, "they_disagree": said}


def _agree(remote: str, here: str) -> bool:
    same = {"running": ("created", "starting", "running", "stopping"), "finished": ("finished", "stopped")}
    return here in same.get(remote, ("failed", "stopped"))


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, item in value.items():
        if isinstance(item, dict) and item:
            flat.update(_flat(item, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = item
    return flat
