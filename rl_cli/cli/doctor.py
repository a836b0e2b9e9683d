"""`rl-cli doctor`: what this machine has, what is missing, and how to get it."""

from __future__ import annotations

import netrc
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

app = single()


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
    checks = [_python(), *_extras(), *_machine(), _home(), _tracking(), *_models()]
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


def _home() -> Check:
    try:
        folder = ensure_home()
    except RlCliError as error:
        return Check("home", "broken", error.message, error.hint)
    return Check("home", "ok", f"{folder} ({shutil.disk_usage(folder).free / 1e9:.1f} GB free)")


def _tracking() -> Check:
    """Never shows the key, only where it is."""
    if os.environ.get("WANDB_MODE") in ("offline", "disabled"):
        return Check("W&B", "ok", f"{os.environ['WANDB_MODE']}, by WANDB_MODE")
    if os.environ.get("WANDB_API_KEY"):
        return Check("W&B", "ok", "key in WANDB_API_KEY")
    try:
        if netrc.netrc().authenticators("api.wandb.ai"):
            return Check("W&B", "ok", "key in ~/.netrc")
    except (OSError, netrc.NetrcParseError):  # no such file, or not readable as one: no key
        pass
    return Check("W&B", "absent", "no key: runs are logged offline", "wandb login, or set WANDB_API_KEY")


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
