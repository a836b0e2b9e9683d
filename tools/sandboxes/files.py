"""Files of a sandbox, read and written by scripts inside it: links and `..` mean what they mean in there.

Needs `cat`, `chmod`, `head`, `mkdir`, `mv`, `readlink`, `sh`, `sha256sum`, `stat`, `tar` and `tee` in there;
busybox has them all.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import posixpath
import secrets
import stat
import tempfile
from abc import ABC
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from tools.sandboxes.archives import TooLarge, pack, unpack
from tools.sandboxes.base import DOWNLOAD_LIMIT, MIB, FileProblem, check_command
from tools.sandboxes.host_folders import remove_folder
from tools.sandboxes.streaming import Streaming

CHUNK = 256 * 1024
SECONDS = 600.0
NOT_REGULAR, DAMAGED = 94, 95
"""Exit codes of our scripts."""

_READ = """\
[ ! -e "$RL_CLI_PATH" ] || [ -f "$RL_CLI_PATH" ] || [ -d "$RL_CLI_PATH" ] || exit 94
"""

# The new content is written beside the old, and takes its place at the end; of a link, where it points to.
_WRITE = """\
p=$RL_CLI_PATH
if [ -L "$p" ]; then p=$(readlink -f -- "$p" && echo /) || exit; p=${p%?/}; fi
if [ -d "$p" ]; then echo "Is a directory" >&2; exit 1; fi
[ ! -e "$p" ] || [ -f "$p" ] || exit 94
mode=$RL_CLI_MODE
if [ -e "$p" ]; then
  [ -w "$p" ] || { echo "Permission denied" >&2; exit 1; }
  [ -n "$mode" ] || mode=$(stat -c %a -- "$p")
fi
folder=${p%/*}
mkdir -p -- "$folder/" || exit
t=$folder/.$RL_CLI_NEW
cat >"$t" && {
  if [ "$(sha256sum <"$t")" != "$RL_CLI_SUM  -" ]; then rm -f -- "$t"; exit 95; fi
  [ -z "$mode" ] || chmod "$mode" "$t"
} && mv -f -- "$t" "$p" || { rm -f -- "$t"; exit 1; }
"""

# What `tee` passes on through a pipe of the script's own is what is summed up.
_UNPACK = """\
mkdir -p -- "$RL_CLI_PATH" && cd -- "$RL_CLI_PATH" || exit
sum=$({ { tee /proc/self/fd/3 | sha256sum >&4; } 3>&1 | {
  tar -xpof - >&2 || echo failed >&4
  cat >/dev/null; } } 4>&1)
[ "$sum" = "$RL_CLI_SUM  -" ] && exit
case $sum in *failed*) exit 1;; esac
exit 95
"""

_PACK = """\
[ -e "$RL_CLI_PATH" ] || { ls -d -- "$RL_CLI_PATH" >/dev/null; exit 1; }
if [ -d "$RL_CLI_PATH" ]; then
  cd -- "$RL_CLI_PATH" || exit
  set -- -cf - .
else
  [ -f "$RL_CLI_PATH" ] || exit 94
  cd -- "${RL_CLI_PATH%/*}/" || exit
  set -- -chf - -- "./${RL_CLI_PATH##*/}"
fi
{ { tar "$@" || echo failed >&2; } | { tee /proc/self/fd/3 | sha256sum >&2; } 3>&1; } | cat
"""

_REASONS = (
    ("No such file", "missing"),
    ("nonexistent", "missing"),
    ("Is a directory", "is_folder"),
    ("Not a directory", "missing"),
    ("Permission denied", "denied"),
    ("Operation not permitted", "denied"),
    ("Read-only file system", "denied"),
    ("No space left", "no_space"),
    ("quota exceeded", "no_space"),
    ("File too large", "too_large"),
    ("File exists", "exists"),
)
"""What programs say in the C locale, and which kind of FileProblem it is."""


class Files(Streaming, ABC):
    """Reads and writes files of any kind of sandbox."""

    async def read_bytes(self, path: str, limit: int | None = None) -> bytes:
        content = bytearray()
        take = 'exec cat -- "$RL_CLI_PATH"' if limit is None else f'exec head -c {limit} -- "$RL_CLI_PATH"'
        env = self._variables(path)
        code, _, error = await self._stream(_READ + take, env=env, on_stdout=content.extend, seconds=SECONDS)
        if code:
            raise _problem(path, code, error)
        return bytes(content)

    async def write_bytes(self, path: str, data: bytes, mode: int | None = None) -> None:
        digest = await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())
        await self._write(path, data, digest, mode)

    async def upload(self, source: Path, target: str) -> None:
        if source.is_dir():
            with tempfile.TemporaryFile() as spool:
                digest = await asyncio.to_thread(_packed, source, spool)
                env = self._variables(target, RL_CLI_SUM=digest)
                code, _, error = await self._stream(_UNPACK, env=env, stdin=_chunks(spool), seconds=SECONDS)
            if code:
                raise _problem(target, code, error)
            return
        with source.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            digest = await asyncio.to_thread(_digest, file)
            await self._write(target, _chunks(file), digest, mode)

    async def download(self, source: str, target: Path, limit: int = DOWNLOAD_LIMIT) -> None:
        with tempfile.TemporaryFile() as spool:
            digest = hashlib.sha256()

            def take(data: bytes) -> None:
                if spool.tell() > limit + MIB:  # more than the archive of so much could have
                    raise _too_large(source, limit)
                digest.update(data)
                spool.write(data)

            env = self._variables(source)
            code, _, error = await self._stream(_PACK, env=env, on_stdout=take, seconds=SECONDS)
            *words, seen = error.decode(errors="replace").splitlines() or [""]
            if code or "failed" in words:
                raise _problem(source, code or 1, error)
            if seen != f"{digest.hexdigest()}  -":
                raise _problem(source, DAMAGED, error)
            await asyncio.to_thread(_put_in_place, spool, target, source, limit)

    async def _write(
        self, path: str, content: bytes | AsyncIterator[bytes], digest: str, mode: int | None
    ) -> None:
        new = f"rl-cli-{secrets.token_hex(8)}"
        wanted = "" if mode is None else f"{mode:o}"
        env = self._variables(path, RL_CLI_SUM=digest, RL_CLI_MODE=wanted, RL_CLI_NEW=new)
        code, _, error = await self._stream(_WRITE, env=env, stdin=content, seconds=SECONDS)
        if code:
            raise _problem(path, code, error)

    def _variables(self, path: str, **more: str) -> dict[str, str]:
        try:
            check_command("", path, {})
        except ValueError:
            raise FileProblem("missing", f"{path!r} is no path") from None
        if not path:
            raise FileProblem("missing", "'' is no path")
        return {"LC_ALL": "C", "RL_CLI_PATH": posixpath.join(self.workdir, path), **more}


def _problem(path: str, code: int, error: bytes) -> FileProblem:
    words = error.decode(errors="replace")
    if code == NOT_REGULAR:
        return FileProblem("failed", f"{path}: neither a file nor a folder")
    if code == DAMAGED:
        return FileProblem("failed", f"{path}: changed, or damaged, while it was copied (checksum)")
    for said, kind in _REASONS:
        if said in words:
            return FileProblem(kind, f"{path}: {said if said != 'nonexistent' else 'No such file'}")
    if code == 153:  # SIGXFSZ: beyond the largest file that is allowed
        return FileProblem("too_large", f"{path}: File too large")
    return FileProblem("failed", f"{path}: {' '.join(words.split()) or f'exit code {code}'}")


def _packed(folder: Path, spool: BinaryIO) -> str:
    """Packs a folder, and returns the SHA-256 of the archive."""
    pack(folder, spool)
    return _digest(spool)


def _digest(file: BinaryIO) -> str:
    """The SHA-256 of the whole file, which is at its beginning afterwards."""
    file.seek(0)
    digest = hashlib.sha256()
    while data := file.read(CHUNK):
        digest.update(data)
    file.seek(0)
    return digest.hexdigest()


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    while data := file.read(CHUNK):
        yield data


def _too_large(source: str, limit: int) -> FileProblem:
    return FileProblem("too_large", f"{source}: more than {limit} bytes")


def _put_in_place(spool: BinaryIO, target: Path, source: str, limit: int) -> None:
    """Unpacks beside the target, then renames: it is there as a whole or not at all."""
    spool.seek(0)
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".rl-cli-", dir=target.parent))
    got = folder / "got"
    try:
        try:
            unpack(spool, got, limit)
        except TooLarge:
            raise _too_large(source, limit) from None
        except ValueError as error:
            raise FileProblem("failed", f"{source}: {error}") from None
        if target.is_dir() and not got.is_dir():
            target = target / posixpath.basename(source)
        if got.is_dir() and target.is_dir() and any(target.iterdir()):
            raise FileExistsError(f"{target} is there, and not empty: a folder is copied to a new place")
        mode = stat.S_IMODE(got.stat().st_mode)
        got.chmod(mode | stat.S_IRWXU)  # a folder that its owner may not write cannot be moved
        os.replace(got, target)
        target.chmod(mode)
    finally:
        remove_folder(folder)
