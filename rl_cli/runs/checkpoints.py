"""Checkpoints of a run: checkpoints/step-<n>, each whole or not there, and whether one still is as it was.

A checkpoint is written elsewhere, sealed (every file on the disk, checkpoint.json with their sizes and
checksums last) and only then given its name. So a crash leaves no half of one, and later damage is found.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_cli.core.files import read_json, write_json
from rl_cli.runs.containment import is_inside

FOLDER = "checkpoints"
SEAL = "checkpoint.json"
WRITING = ".writing"
_GOING = ".removed-"
_NAME = re.compile(r"step-(\d+)")
CHUNK_BYTES = 1 << 22


@dataclass(frozen=True)
class Checkpoint:
    step: int
    path: Path

    def damage(self, checksums: bool = True) -> str | None:
        """What is wrong with it; None if every file is as it was sealed.

        Args:
            checksums: Read every file; else only their sizes are compared.
        """
        try:
            seal = read_json(self.path / SEAL)
            if seal["step"] != self.step:
                return f"{SEAL} says that it is of step {seal['step']}"
            files = seal["files"]
            for name, (size, checksum) in files.items():
                path = self.path / name
                if not path.is_file():
                    return f"{name} is missing"
                if path.stat().st_size != size:
                    return f"{name} has {path.stat().st_size} bytes and had {size}"
                if checksums and _checksum(path) != checksum:
                    return f"{name} has changed"
        except FileNotFoundError:
            return f"it was never completed: it has no {SEAL}"
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            return f"{SEAL} cannot be read: {error}"
        return None


def all_checkpoints(run: Path) -> list[Checkpoint]:
    """Every folder named as a checkpoint, whole or not, oldest first; a link out of the run is none."""
    folder = run / FOLDER
    named = [(_NAME.fullmatch(path.name), path) for path in (folder.iterdir() if folder.is_dir() else ())]
    ours = [(match, path) for match, path in named if match and path.is_dir() and is_inside(run, path)]
    found = [Checkpoint(int(match[1]), path) for match, path in ours]
    return sorted(found, key=lambda one: one.step)


def place(run: Path, step: int, folder: Path, **facts: Any) -> Path:
    """Seals a folder and makes it the run's checkpoint of a step; returns its path.

    Args:
        run: The run's directory.
        step: The step.
        folder: What to make of it, on the same file system.
        facts: More for checkpoint.json.

    Raises:
        OSError: It cannot be written, or the run's checkpoints are elsewhere.
    """
    target = run / FOLDER / f"step-{step}"
    if not is_inside(run, target):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(target))
    files = {}
    for path in _files(folder):
        with path.open("rb") as file:
            os.fsync(file.fileno())
        files[str(path.relative_to(folder))] = [path.stat().st_size, _checksum(path)]
    write_json(folder / SEAL, {"step": step, **facts, "files": files})
    remove(target)
    folder.rename(target)
    _fsync(target.parent)
    return target


def remove(path: Path) -> None:
    """Removes a checkpoint; one that is half removed has lost its name."""
    going = path.with_name(_GOING + path.name)
    shutil.rmtree(going, ignore_errors=True)
    if path.exists():
        path.rename(going)
        shutil.rmtree(going, ignore_errors=True)


def sweep(run: Path) -> None:
    """Removes what is half written or half removed."""
    for path in (run / FOLDER).glob(".*"):
        if (path.name == WRITING or path.name.startswith(_GOING)) and is_inside(run, path):
            shutil.rmtree(path, ignore_errors=True)


def _files(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / SEAL)


def _checksum(path: Path) -> int:
    """CRC-32: against damage, not against intent; it keeps up with the disk."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            value = zlib.crc32(chunk, value)
    return value


def _fsync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
