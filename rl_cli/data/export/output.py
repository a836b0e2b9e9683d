"""An export's file or folder, which is under its name whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rl_cli.core.errors import BadUsage
from rl_cli.core.files import explain_os_error

ABOUT = "export.json"
"""In a folder of an export: what it was made from. A folder without it is never replaced."""


@contextmanager
def new_output(target: Path, *, folder: bool, force: bool) -> Iterator[Path]:
    """A path beside `target` to write to, which takes its name when the block ends without an error.

    Args:
        target: The file or folder to be.
        folder: Make a folder.
        force: Replace what is there; of folders only those that are exports.

    Raises:
        BadUsage: Something is there, or its own folder is not.
        RlCliError: It cannot be written; nothing is left beside it, and what was there is untouched.
    """
    target = Path(os.path.expanduser(target)).absolute()
    _require_free(target, folder, force)
    temporary = target.with_name(f".{target.name[:100]}.{os.urandom(6).hex()}.tmp")
    try:
        if folder:
            temporary.mkdir()
        yield temporary
        _require_free(target, folder, force)
        _publish(temporary, target)
    except OSError as error:
        raise explain_os_error(error, target) from error
    finally:
        _remove(temporary)


def _require_free(target: Path, folder: bool, force: bool) -> None:
    if not target.parent.is_dir():
        raise BadUsage(f"the folder {target.parent} does not exist", "make it, or name another --output")
    if not os.path.lexists(target):
        return
    if not force:
        raise BadUsage(f"{target} exists already", "name another --output, or replace it with --force")
    if not (target.is_dir() if folder else target.is_file()):
        raise BadUsage(f"{target} is no {'folder' if folder else 'file'}", "name another --output")
    if folder and any(target.iterdir()) and not (target / ABOUT).is_file():
        raise BadUsage(f"{target} is no export: it has no {ABOUT}", "name another --output")


def _publish(temporary: Path, target: Path) -> None:
    for path in [*temporary.rglob("*"), temporary] if temporary.is_dir() else [temporary]:
        _sync(path)
    if not target.is_dir():
        os.replace(temporary, target)
    else:
        aside = temporary.with_suffix(".old")
        os.replace(target, aside)
        os.replace(temporary, target)
        _remove(aside)
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:  # some file systems cannot sync a folder
        if not path.is_dir() or error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
