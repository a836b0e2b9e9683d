"""What a process of ours does first, so that no secret leaves it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Mapping

from rl_cli.core.redaction import redact_stream
from rl_cli.core.secret_search import keep_environment
from rl_cli.core.secret_values import is_secret_name

_PROVIDER_KEY = re.compile(r"(?i:.*API_?KEY|ANTHROPIC_AUTH_TOKEN)")


def redact_output() -> None:
    """Standard output and error show no secrets from now on. Not covered: what is written past Python."""
    sys.stdout, sys.stderr = redact_stream(sys.stdout), redact_stream(sys.stderr)


def provider_keys(environment: Mapping[str, str], keep: Collection[str] = ()) -> list[str]:
    """The variables that hold keys of providers, which a process that runs a person's code does not get."""
    return [name for name in environment if _PROVIDER_KEY.fullmatch(name) and name not in keep]


def drop_keys(keep: Collection[str] = ()) -> None:
    """Takes the keys of providers out of this process's environment; they are still masked.

    What the process was started with stays readable in /proc: whoever starts it leaves out what it can.

    Args:
        keep: Names of variables that are needed.
    """
    keep_environment()
    for name in provider_keys(os.environ, keep):
        del os.environ[name]


def without_secrets(environment: Mapping[str, str], prefix: str) -> dict[str, None]:
    """What to take out of a child's environment: every secret variable but those that begin with `prefix`."""
    return {name: None for name in environment if is_secret_name(name) and not name.startswith(prefix)}
