"""Which settings files of working folders a person trusts: each by its path with a hash of its content."""

from __future__ import annotations

import json
from pathlib import Path

from rl_cli.core.errors import BadUsage
from rl_cli.core.files import explain_os_error, write_json
from rl_cli.core.handwritten import read_text


def trust(register: Path, path: Path, content: bytes) -> None:
    """From now on the file at `path` is trusted while it holds exactly `content`."""
    _write(register, _read(register) | {str(path): _hash(content)})


def revoke(register: Path, path: Path) -> bool:
    """Takes the trust back. Returns whether there was any."""
    known = _read(register)
    found = known.pop(str(path), None) is not None
    if found:
        _write(register, known)
    return found


def trusted(register: Path, path: Path, content: bytes) -> bool | None:
    """Whether the file is trusted with this content; None where it never was.

    Raises:
        BadUsage: The register is damaged.
    """
    known = _read(register).get(str(path))
    return None if known is None else known == _hash(content)


def _hash(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


def _read(register: Path) -> dict[str, str]:
    if not register.exists():
        return {}
    try:
        known = json.loads(read_text(register))
    except (ValueError, RecursionError):
        known = None
    if not isinstance(known, dict) or not all(isinstance(value, str) for value in known.values()):
        raise BadUsage(
            f"{register} is damaged", "delete it, and trust your folders anew: rl-cli config trust"
        )
    return known


def _write(register: Path, known: dict[str, str]) -> None:
    try:
        register.parent.mkdir(parents=True, exist_ok=True)
        write_json(register, known)
    except OSError as error:
        raise explain_os_error(error, register) from error
