"""Folders as tar files. What comes out of a sandbox is not trusted: it writes nothing outside its folder."""

from __future__ import annotations

import errno
import os
import shutil
import tarfile
from pathlib import Path
from typing import Any, BinaryIO

PAGE = 4096
"""Bytes that a file system takes for an entry, however little is in it."""
DEEPEST = 100
"""Folders in each other that are taken: Python makes and removes them by recursion."""
LONGEST_HEADER = 64 * 1024
"""Bytes of an entry's long name and the like."""


def pack(folder: Path, file: BinaryIO) -> None:
    """Writes files, folders and links of a folder, with their modes and without their owners."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member if member.isreg() or member.isdir() or member.issym() or member.islnk() else None

    # Busybox reads GNU's long names, not those of pax.
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        archive.add(folder, arcname=".", filter=plain)


def unpack(file: BinaryIO, target: Path, limit: int) -> None:
    """Makes the archive's one file, or its folder, at `target`; what is left out: devices and pipes in a
    folder, and links that lead out of it, or may.

    Links are made last, so that nothing is ever written through one.

    Args:
        limit: Bytes that the files may have together, holes included; an entry of a folder counts as a page.

    Raises:
        TooLarge: They have more.
        ValueError: No such archive, or one whose names lead elsewhere.
        OSError: It cannot be written.
    """
    try:
        with tarfile.open(fileobj=file, mode="r|", tarinfo=_Entry) as archive:
            _Unpacking(target, limit).take(archive)
    except (tarfile.TarError, EOFError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"what came is no tar file: {error}") from error
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise ValueError("two entries have one name") from None
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise ValueError("a name is too long for this computer") from None


_HEADERS = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)


class TooLarge(ValueError):
    """There is more in an archive than may be taken."""


class _Entry(tarfile.TarInfo):
    """Reads no header that is longer than any name."""

    @classmethod
    def frombuf(cls, *arguments: Any) -> _Entry:
        entry = super().frombuf(*arguments)
        if entry.size < 0 or (entry.type in _HEADERS and entry.size > LONGEST_HEADER):
            raise tarfile.ReadError("a header has an impossible size")
        return entry


class _Unpacking:
    """One archive, on its way to the disk."""

    def __init__(self, target: Path, limit: int) -> None:
        self._target, self._left = target, limit
        self._folders: dict[tuple[str, ...], int] = {}
        """Their modes."""
        self._links: dict[tuple[str, ...], str] = {}

    def take(self, archive: tarfile.TarFile) -> None:
        first = archive.next()
        if first is None:
            raise ValueError("what came is empty")
        if first.isdir() and not _parts(first.name):
            self._take_folder(archive, first)
        elif first.isreg():
            self._count(first.size)
            _write(archive, first, self._target)
            if archive.next():
                raise ValueError("more than one file came")
        else:
            raise ValueError("neither a file nor a folder")

    def _take_folder(self, archive: tarfile.TarFile, top: tarfile.TarInfo) -> None:
        self._make_folder((), top.mode)
        for member in archive:
            inside = _parts(member.name)
            if member.isdir():
                self._make_folder(inside, member.mode)
                continue
            self._make_folder(inside[:-1])
            self._count(PAGE)
            path = self._target.joinpath(*inside)
            if member.issym():
                self._links[inside] = member.linkname
            elif member.islnk():
                old = self._target.joinpath(*_parts(member.linkname))
                self._count(old.stat().st_size if old.is_file() else 0)
                _copy(old, path)
            elif member.isreg():
                self._count(member.size)
                _write(archive, member, path)
        for inside, points_to in self._links.items():
            path = self._target.joinpath(*inside)
            if os.path.lexists(path):
                raise ValueError(f"two entries have one name: {path.name!r}")
            if _stays_inside(len(inside) - 1, points_to):
                path.symlink_to(points_to)
        for inside, mode in reversed(self._folders.items()):  # what may not be written comes last
            self._target.joinpath(*inside).chmod(mode)

    def _make_folder(self, inside: tuple[str, ...], mode: int | None = None) -> None:
        for depth in range(len(inside) + 1):
            if inside[:depth] not in self._folders:
                self._count(PAGE)
                self._target.joinpath(*inside[:depth]).mkdir()
                self._folders[inside[:depth]] = 0o755
        if mode is not None:
            self._folders[inside] = mode & 0o777

    def _count(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise TooLarge("more than may be taken")


def _parts(name: str) -> tuple[str, ...]:
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts:
        raise ValueError(f"a name leads out of the folder: {name!r}")
    if len(parts) > DEEPEST:
        raise ValueError(f"folders are nested more than {DEEPEST} deep")
    return parts


def _stays_inside(depth: int, points_to: str) -> bool:
    """Whether a link in a folder so deep leads upwards first, no further than to the top, and then only down:
    so it stays inside whatever other links that do it passes."""
    parts = [part for part in points_to.split("/") if part not in ("", ".")]
    ups = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
    return not points_to.startswith("/") and ups <= depth and ".." not in parts[ups:]


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
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    os.fchmod(fd, mode & 0o777)  # no program of a sandbox runs as its owner on the host
    return os.fdopen(fd, "wb")
