"""Folders as tar files. What comes out of a sandbox is not trusted: it writes nothing outside its folder."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path
from typing import BinaryIO


def pack(folder: Path, file: BinaryIO) -> None:
    """Writes files, folders and links of a folder, with their modes and without their owners."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member if member.isreg() or member.isdir() or member.issym() or member.islnk() else None

    # Busybox reads GNU's long names, not those of pax.
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        archive.add(folder, arcname=".", filter=plain)


def unpack(file: BinaryIO, target: Path) -> Path:
    """Makes the archive's one file, or its folder, at `target`; devices and pipes in a folder are left out.

    Links are made last, so that nothing is ever written through one.

    Returns:
        `target`.

    Raises:
        ValueError: No such archive, or one whose names lead elsewhere.
        OSError: It cannot be written.
    """
    links: list[tuple[Path, str]] = []
    modes: list[tuple[Path, int]] = []
    try:
        with tarfile.open(fileobj=file, mode="r|") as archive:
            for member in archive:
                inside = _parts(member.name)
                if member.isdir():
                    path = target.joinpath(*inside)
                    path.mkdir(parents=True, exist_ok=True)
                    modes.append((path, member.mode & 0o777))
                    continue
                # The only file of an archive without a folder is the target itself.
                path = target.joinpath(*inside) if target.is_dir() else target
                if member.issym():
                    path.parent.mkdir(parents=True, exist_ok=True)  # now: later it might be one of the links
                    links.append((path, member.linkname))
                elif member.islnk():
                    _copy(target.joinpath(*_parts(member.linkname)), path)
                elif member.isreg():
                    _write(archive, member, path)
    except tarfile.TarError as error:
        raise ValueError(f"what came is no tar file: {error}") from error
    for path, points_to in links:
        if os.path.lexists(path):
            raise ValueError(f"two entries have one name: {path.name!r}")
        path.symlink_to(points_to)
    for path, mode in reversed(modes):  # a folder that may not be written only after what is in it
        path.chmod(mode)
    return target


def _parts(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        raise ValueError(f"a name leads out of the folder: {name!r}")
    return parts


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    content = archive.extractfile(member)
    assert content
    with _new(path, member.mode) as file:
        shutil.copyfileobj(content, file, 1024 * 1024)


def _copy(old: Path, path: Path) -> None:
    """For a hard link: files that share their content would be a surprise."""
    if not old.is_file():
        raise ValueError(f"a hard link to what is not there: {old.name!r}")
    with old.open("rb") as content, _new(path, old.stat().st_mode) as file:
        shutil.copyfileobj(content, file, 1024 * 1024)


def _new(path: Path, mode: int) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    os.fchmod(fd, mode & 0o777)  # no program of a sandbox runs as its owner on the host
    return os.fdopen(fd, "wb")
