"""`rl-cli doctor`: what this machine has, what is missing, and how to get it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from typing import Literal

import typer

from rl_cli.cli.app import JsonOption, single
from rl_cli.cli.output import print_json, print_table
from rl_cli.core.errors import RlCliError
from rl_cli.core.extras import EXTRAS, install_command, missing_modules
from rl_cli.core.settings import ensure_home, load_settings
from rl_cli.runs.supervision.tracking_mode import (
    CLOUD,
    address_problem,
    has_key,
    key_problem,
    server_address,
)

app = single()
LEAST_FREE_BYTES = 100_000_000
"""With less, a run soon fails: the checkpoints of the smallest model that is of use take as much."""


@dataclass(frozen=True)
class Check:
    """One finding. Only "broken" makes the command fail; "absent" is something one can do without."""

    name: str
    state: Literal["ok", "absent", "broken"]
    detail: str
    remedy: str | None = None


@app.command()
def doctor(json_: JsonOption = False) -> None:
    """Say what this machine has, what is missing, and how to get it."""
    checks = [_python(), *_extras(), *_machine(), *_home(), _tracking(), *_models(), _monitor()]
    checks += [*_sandboxes(), *_toolsets()]
    ok = all(check.state != "broken" for check in checks)
    if json_:
        print_json({"ok": ok, "checks": [asdict(check) for check in checks]})
    else:
        rows = [(c.name, c.state, c.detail, c.remedy or "") for c in checks]
        print_table(["check", "state", "found", "what to do"], rows)
    if not ok:
        raise typer.Exit(1)


def _python() -> Check:
    return Check("python", "ok", f"{platform.python_version()} ({sys.executable})")


def _extras() -> list[Check]:
    checks = []
    for extra in EXTRAS:
        missing = missing_modules(extra)
        if missing:
            found = f"missing: {', '.join(missing)}"
            checks.append(Check(f"extra '{extra}'", "absent", found, install_command(extra)))
        else:
            checks.append(Check(f"extra '{extra}'", "ok", "installed"))
    return checks


def _machine() -> list[Check]:
    from rl_cli.config.machine import describe_machine

    machine = describe_machine()
    gpus = ", ".join(f"{gpu['name']} ({gpu['memory_gb']:.0f} GB)" for gpu in machine["gpus"])
    without = "the profile cpu-demo trains without one"
    return [
        Check("processor", "ok", f"{machine['cpus']} cores"),
        Check("memory", "ok", f"{machine['memory_gb']:.1f} GB"),
        Check("GPU", "ok", gpus) if gpus else Check("GPU", "absent", "no NVIDIA GPU", without),
    ]


def _home() -> list[Check]:
    """The folder, its disk, and what was spent; RL_CLI_HOME is made if it is missing."""
    from rl_cli.spending.ledger import Ledger

    try:
        folder = ensure_home()
    except RlCliError as error:
        return [Check("home", "broken", error.message, error.hint)]
    free = shutil.disk_usage(folder).free
    size = f"{free / 1e9:.1f} GB" if free >= 1e9 else f"{free / 1e6:.0f} MB"
    home_check = Check("home", "ok", f"{folder} ({size} free)")
    if free < LEAST_FREE_BYTES:
        remedy = "make room: rl-cli runs clean shows what runs have left behind"
        home_check = Check("home", "broken", f"the disk of {folder} is nearly full: {size} are free", remedy)
    try:
        with Ledger(folder).reading():
            return [home_check]
    except RlCliError as error:
        return [home_check, Check("spending", "broken", error.message, error.hint)]


def _monitor() -> Check:
    from rl_cli.core.settings import home
    from rl_cli.monitoring.heartbeat import monitor_state
    from rl_cli.monitoring.live_runs import LiveRuns
    from rl_cli.runs.times import duration

    found, live = monitor_state(home()), LiveRuns(home()).find()
    runs = f"{len(live)} run{'' if len(live) == 1 else 's'} to watch"
    how = "rl-cli monitor, or a chat, judges runs at their checks"
    if found is None or found.state == "ended":
        return Check("monitor", "absent" if live else "ok", f"not running, {runs}", how if live else None)
    last = f"last heartbeat {duration(found.heartbeat_seconds)} ago"
    if found.state != "running":
        what = "is gone" if found.state == "gone" else "hangs"
        again = "start it again: rl-cli monitor, or: systemctl --user restart rl-cli-monitor"
        end = f"kill -9 {found.pid}, then " if found.state == "hangs" else ""
        remedy = f"{end}{again} (pid {found.pid} was the last one)"
        return Check("monitor", "broken" if live else "absent", f"it {what}, {last}, {runs}", remedy)
    if found.overdue:
        remedy = "see what it says about them; start it again"
        return Check("monitor", "broken", f"{last}, overdue checks: {', '.join(found.overdue[:3])}", remedy)
    return Check("monitor", "ok", f"running (pid {found.pid}), {last}, {len(found.runs)} watched")


def _sandboxes() -> list[Check]:
    """Where commands of models could run here."""
    from tools.sandboxes.kinds import DEFAULT, KINDS, usable

    checks = []
    for kind in KINDS:
        why = usable(kind)
        name = f"sandbox '{kind}'"
        usual = ", the default" if kind == DEFAULT else ""
        checks.append(Check(name, "absent", why) if why else Check(name, "ok", f"usable{usual}"))
    return checks


def _toolsets() -> list[Check]:
    """Which tools a model in a rollout can be offered here."""
    from tools.toolsets import TOOLSETS, why_unavailable

    checks = []
    for name, toolset in TOOLSETS.items():
        if not toolset.operations:
            why = why_unavailable(name)
            found = why or toolset.description
            checks.append(Check(f"toolset '{name}'", "absent" if why else "ok", found))
    return checks


def _tracking() -> Check:
    """Never shows the key, only where it is; asks no server."""
    if os.environ.get("WANDB_MODE") in ("offline", "disabled"):
        return Check("W&B", "ok", f"{os.environ['WANDB_MODE']}, by WANDB_MODE")
    if problem := address_problem():
        return Check("W&B", "broken", problem, "set it to where the server is asked, or unset it")
    address = server_address()
    where = "" if address.rstrip("/") == CLOUD else f", at {address} (WANDB_BASE_URL)"
    if not has_key():
        upload = "wandb login, or set WANDB_API_KEY; then: rl-cli runs sync"
        return Check("W&B", "absent", f"no key{where}: runs are recorded offline", upload)
    source = "WANDB_API_KEY" if os.environ.get("WANDB_API_KEY") else "~/.netrc"
    if problem := key_problem():
        remedy = "copy the whole key from the W&B settings page, or unset it to record offline"
        return Check("W&B", "broken", f"what {source} holds cannot be a key: {problem}", remedy)
    return Check(
        "W&B", "ok", f"key in {source}{where}: runs are uploaded live (not asked whether it is right)"
    )


def _models() -> list[Check]:
    """Which keys there are, by the names of their variables only, and who would answer where."""
    from rl_cli.agent.models import OPERATOR, choose_model, endpoint_of, keys_set, resolve_policy

    try:
        settings = load_settings()
        keys = keys_set(settings)
        choice = choose_model(settings.model)
        resolve_policy(choice.name, settings=settings)
        where = ""
        if choice.name != OPERATOR and not choice.name.startswith("scripted/"):
            endpoint = endpoint_of(choice.name, settings=settings)
            where = f" at {endpoint.base_url or f'the address of {endpoint.provider}'}"
    except RlCliError as error:
        return [Check("model", "broken", error.message, error.hint)]
    key_check = (
        Check("keys", "ok", f"set: {', '.join(keys)}")
        if keys
        else Check(
            "keys", "absent", "no key of a model provider is set", "export OPENAI_API_KEY=..., or another"
        )
    )
    how = None if settings.model else "rl-cli config set model provider/name, or --model"
    default = "" if settings.model else " (default)"
    return [key_check, Check("model", "ok", f"{choice.name}{where}{default}", how)]
