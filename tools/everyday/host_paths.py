"""Files of the host, for callers without a sandbox: only in allowed folders, whatever links and dots say.

Each path is resolved, then checked against the resolved folders part by part, and opened from there folder by
folder without following a link: one that is put in the way between the check and the opening is an error, no
way out. Not covered: hard links and mounts that somebody put into an allowed folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.dispatcher import CallContext, ToolError
from tools.sandboxes.base import FileProblem

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
KINDS = {
    errno.ENOENT: "missing",
    errno.ENOTDIR: "missing",
    errno.EISDIR: "is_folder",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
    errno.ELOOP: "denied",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
}


class HostFiles:
    """Reads and writes files of this computer inside some folders.

    Args:
        roots: The allowed folders, which must exist, as absolute paths without links; relative paths are
            meant from the first.
        beyond: What a caller who wants more may do.
    """

    def __init__(self, roots: Sequence[Path], beyond: str = "") -> None:
        try:
            self.roots = [root.resolve(strict=True) for root in roots]
        except OSError as error:
            folder = ", ".join(map(str, roots))
            raise ToolError("missing", f"the working folder {folder} is gone: {error.strerror}") from error
        for root, real in zip(roots, self.roots, strict=True):
            if real != root:  # what was allowed for one folder is not for another
                raise ToolError("outside", f"the working folder {root} leads elsewhere by now: to {real}")
        self._beyond = beyond

    @classmethod
    def of(cls, context: CallContext) -> HostFiles:
        """Those that a call may use."""
        return cls(context.file_roots, ", or use run_outside" if "host" in context.toolsets else "")

    def locate(self, path: str) -> Path:
        """The real path of a file or folder, which need not exist.

        Raises:
            ToolError: It is outside the allowed folders ("outside").
        """
        if "\0" in path:
            raise ToolError("invalid_path", f"a path has no NUL: {path[:100]!r}")
        try:
            real = (self.roots[0] / path).resolve()
        except (OSError, RuntimeError) as error:  # links in a circle
            raise ToolError("invalid_path", f"{path}: {error}") from error
        if not any(real.is_relative_to(root) for root in self.roots):
            allowed = ", ".join(map(str, self.roots))
            raise ToolError(
                "outside", f"{path} is outside of what may be used here", f"stay in {allowed}{self._beyond}"
            )
        return real

    def open(self, path: str) -> int:
        """A descriptor of a file or folder, for reading; the caller closes it.

        Raises:
            FileProblem: There is none, or it cannot be opened.
        """
        real = self.locate(path)
        with _explained(path), self._folder(real, make=False) as (folder, name):
            return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)

    async def read_bytes(self, path: str, limit: int | None = None) -> bytes:
        """As `Sandbox.read_bytes`; ToolError for a path outside."""
        return await asyncio.to_thread(self._read, path, limit)

    async def write_bytes(self, path: str, data: bytes, mode: int | None = None) -> None:
        """As `Sandbox.write_bytes`; ToolError for a path outside."""
        await asyncio.to_thread(self._write, path, data, mode)

    def _read(self, path: str, limit: int | None) -> bytes:
        descriptor = self.open(path)
        try:
            kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
            if kind == stat.S_IFDIR:
                raise FileProblem("is_folder", f"{path} is a folder")
            if kind != stat.S_IFREG:
                raise FileProblem("failed", f"{path} is a device or a pipe, not a file")
            with _explained(path), open(descriptor, "rb", closefd=False) as file:
                return file.read(-1 if limit is None else limit)
        finally:
            os.close(descriptor)

    def _write(self, path: str, data: bytes, mode: int | None) -> None:
        real = self.locate(path)
        with _explained(path), self._folder(real, make=True) as (folder, name):
            with contextlib.suppress(FileNotFoundError):
                there = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if not stat.S_ISREG(there.st_mode):
                    raise FileProblem(
                        "is_folder" if stat.S_ISDIR(there.st_mode) else "denied", f"{path} is no plain file"
                    )
                mode = stat.S_IMODE(there.st_mode) if mode is None else mode
            temporary = f".{secrets.token_hex(8)}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
            try:
                with open(descriptor, "wb") as file:
                    file.write(data)
                    if mode is not None:
                        os.fchmod(descriptor, mode)
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(temporary, dir_fd=folder)
                raise

    @contextmanager
    def _folder(self, real: Path, make: bool) -> Iterator[tuple[int, str]]:
        """A descriptor of a file's folder, reached from its root without a link, and the file's name."""
        root = next(root for root in self.roots if real.is_relative_to(root))
        *folders, name = real.relative_to(root).parts or (".",)
        at = os.open(root, FOLDER)
        try:
            for folder in folders:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(folder, dir_fd=at)
                inner = os.open(folder, FOLDER, dir_fd=at)
                os.close(at)
                at = inner
            yield at, name
        finally:
            os.close(at)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = KINDS.get(error.errno or 0, "failed")
        raise FileProblem(kind, f"{path}: {os.strerror(error.errno or 0)}") from error
