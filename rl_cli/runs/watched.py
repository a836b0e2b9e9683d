"""Runs that somebody else started and that W&B knows: a directory of ours that follows one.

`wandb:entity/project/run` names one wherever a run is named. Its directory is that of any run: metrics.jsonl
is a local copy, with common names, which `rl_cli.tracking.watcher` keeps up to date; the rest (events,
checks, report) is as ever. No process of ours trains it, so nothing is judged by processes.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rl_cli.core.errors import BadUsage
from rl_cli.core.files import explain_os_error
from rl_cli.runs.first_files import write_first_files
from rl_cli.runs.run_dir import RunDir

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig

PREFIX = "wandb:"


def is_watched(run: RunDir) -> bool:
    """Whether it is a run at W&B that is only followed here."""
    return run.id.startswith("wandb-") and run.state().get("backend") == "wandb"


def wandb_path(text: str) -> str:
    """`entity/project/run` of `wandb:entity/project/run` or of the address of a run's page.

    Raises:
        BadUsage: It is not of that form, or the page is on another server than WANDB_BASE_URL.
    """
    rest = text.removeprefix(PREFIX)
    if page := re.fullmatch(r"https?://([^/]+)/(?:wandb/)?([^/]+)/([^/]+)/runs/([^/?#]+).*", rest):
        host, *names = page.groups()
        asked = urlsplit(os.environ.get("WANDB_BASE_URL", "")).netloc
        if asked and _site(asked) != _site(host):
            hint = "set WANDB_BASE_URL to the server that has the run"
            raise BadUsage(f"that page is on {host[:200]}, and W&B is asked at {asked}", hint)
        rest = "/".join(names)
    parts = rest.split("/")
    if len(parts) != 3 or not all(
        re.fullmatch(r"[^\s/:?#\x00-\x1f\ud800-\udfff]{1,128}", part) for part in parts
    ):
        raise BadUsage(
            f"'{text[:200]}' names no run at W&B",
            "write wandb:ENTITY/PROJECT/RUN, with the run's id, not its name",
        )
    return rest


def _site(host: str) -> str:
    """W&B's pages are at wandb.ai, what programs ask is api.wandb.ai."""
    return host.rpartition("@")[2].casefold().removeprefix("api.").removeprefix("www.")


def watched_id(path: str) -> str:
    """The id of the directory that follows `entity/project/run`; two runs never share one."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", path.replace("/", "-"))
    if plain == path.replace("/", "-") and path.count("-") == 0 and len(plain) < 150:
        return f"wandb-{plain}"
    import hashlib

    return f"wandb-{plain[:150]}-{hashlib.sha256(path.encode()).hexdigest()[:6]}"


def watched_run(home: str | Path, text: str) -> RunDir:
    """The directory that follows a run at W&B; made if there is none yet. W&B is not asked.

    Any number of processes may make directories at the same time; one appears whole, or not at all.

    Raises:
        BadUsage: `text` names no run, or the home folder cannot be written.
    """
    path = wandb_path(text)
    folder = Path(home) / "runs"
    target = folder / watched_id(path)
    if (target / "state.json").exists():
        return RunDir(target)
    draft = folder / f".new-{secrets.token_hex(6)}"
    try:
        draft.mkdir(parents=True)
        write_first_files(draft, config_of(path).model_dump(mode="json"))
        try:
            os.rename(draft, target)
        except OSError:
            if not (target / "state.json").exists():
                raise
            shutil.rmtree(draft, ignore_errors=True)  # another process was faster
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise explain_os_error(error, folder) from error
    return RunDir(target)


def path_of(run: RunDir) -> str:
    """`entity/project/run` of a watched run."""
    return str(run.config_dict()["backend"]["run"])


def config_of(path: str, remote: dict[str, Any] | None = None) -> RunConfig:
    """The config of a watched run: what is known of it.

    Args:
        path: entity/project/run.
        remote: The run's config at W&B.
    """
    from rl_cli.config.tree import RunConfig

    remote = remote or {}
    project = path.split("/")[1]
    ours = remote.get("environment")
    environment = ours.get("name") if isinstance(ours, dict) else None
    steps = total_steps(remote)
    return RunConfig.model_validate(
        {
            "profile": "watched",
            "environment": {"name": environment if isinstance(environment, str) else project},
            "backend": {"name": "wandb", "run": path},
            "model": {"name": model_name(remote) or "unknown"},
            "sft": {"steps": 0},
            "tracking": {"wandb": "off"},
            **({"grpo": {"steps": steps}} if steps else {}),
        }
    )


def total_steps(remote: dict[str, Any]) -> int | None:
    """The planned steps, by the names that trainers give them; None if none is known."""
    trainer, grpo = remote.get("trainer"), remote.get("grpo")
    known = [grpo.get("steps")] if isinstance(grpo, dict) else []
    known += [trainer.get("total_training_steps")] if isinstance(trainer, dict) else []
    known += [remote.get(name) for name in ("max_steps", "total_steps", "total_training_steps", "num_steps")]
    return next((n for n in known if isinstance(n, int) and not isinstance(n, bool) and 0 < n < 10**7), None)


def wandb_step(row: dict[str, Any]) -> int:
    """W&B's own step of a row of a watched run's metrics; -1 for any other row."""
    place = row.get("wandb")
    step = place.get("step") if isinstance(place, dict) else None
    if not isinstance(step, int) or not isinstance(row.get("step"), int):
        return -1
    return step if isinstance(row.get("time"), str) and isinstance(row.get("phase"), str) else -1


def model_name(remote: dict[str, Any]) -> str | None:
    """The model, by the names that trainers give it."""
    model = remote.get("model")
    known = [model.get("name")] if isinstance(model, dict) else [model]
    known += [remote.get(name) for name in ("model_name", "model_name_or_path", "_name_or_path")]
    return next((name[:200] for name in known if isinstance(name, str) and name), None)
