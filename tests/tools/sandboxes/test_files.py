"""Files go into a sandbox and come out of it as they are, whatever their names and wherever links lead."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from tests.tools.sandboxes.leftovers import nothing_left
from tests.tools.sandboxes.places import DEADLINE, Place
from tools.sandboxes.archives import unpack
from tools.sandboxes.base import MIB, FileProblem, Sandbox

NAMES = [
    "plain",
    "with space",
    'it\'s "quoted"',
    "new\nline\n",
    "-rf",
    "$HOME `id`",
    "*?[a]",
    "文件",
    "deep/er/and/deeper/file",
    "a\\b",
]


@pytest.mark.parametrize("size", [0, 1, 95 * 1024, 130 * 1024, 5 * MIB])
def test_sbx_13_files_of_any_size_and_content_arrive_as_they_are(
    place: Place, files: Path, size: int
) -> None:
    data = random.Random(size).randbytes(size)
    source = files / "source"
    source.write_bytes(data)
    source.chmod(0o741)
    name = "new/folder/a 'name'\nof \"two\" lines"

    async def test(made: Sandbox) -> None:
        await made.upload(source, name)
        result = await made.run('sha256sum <"$NAME"; stat -c %a "$NAME"', DEADLINE, env={"NAME": name})
        assert result.stdout.text == f"{hashlib.sha256(data).hexdigest()}  -\n741\n"
        await made.download(name, files / "back")
        assert (files / "back").read_bytes() == data
        assert (files / "back").stat().st_mode & 0o777 == 0o741

    place.check(test)


def test_sbx_13_text_that_looks_like_a_script_stays_text(place: Place) -> None:
    text = b"EOF\n'EOF'\n$VAR ${VAR} $(id) `id` \\n \\\n\0\r\n\xff\nEOF"

    async def test(made: Sandbox) -> None:
        await made.write_bytes("text", text)
        assert await made.read_bytes("text") == text

    place.check(test)


def test_any_name_is_a_name(place: Place) -> None:
    async def test(made: Sandbox) -> None:
        for name in NAMES:
            await made.write_bytes(name, name.encode())
        for name in NAMES:
            assert await made.read_bytes(name) == name.encode()
            assert await made.read_bytes(f"{made.workdir}/{name}", limit=3) == name.encode()[:3]

    place.check(test)


def test_fifty_megabytes_go_in_and_out(place: Place, files: Path) -> None:
    size = 50 * MIB
    with (files / "source").open("wb") as file:
        for _ in range(50):
            file.write(os.urandom(MIB))

    async def test(made: Sandbox) -> None:
        await made.upload(files / "source", "big")
        await made.download("big", files / "back")

    place.check(test)
    sums = {hashlib.sha256((files / name).read_bytes()).hexdigest() for name in ("source", "back")}
    assert len(sums) == 1
    assert (files / "back").stat().st_size == size


def test_64_uploads_at_once_do_not_mix(place: Place, files: Path) -> None:
    for number in range(64):
        (files / str(number)).write_bytes(random.Random(number).randbytes(100_000 + number))

    async def test(made: Sandbox) -> None:
        await asyncio.gather(*(made.upload(files / str(number), f"to/{number}") for number in range(64)))
        result = await made.run("cd to && sha256sum $(seq 0 63)", DEADLINE)
        expected = [
            f"{hashlib.sha256((files / str(number)).read_bytes()).hexdigest()}  {number}"
            for number in range(64)
        ]
        assert result.stdout.text.splitlines() == expected
        assert (await made.run("ls -A to | wc -l", DEADLINE)).stdout.text.strip() == "64"

    place.check(test)


def test_folders_keep_modes_links_and_empty_folders(place: Place, files: Path) -> None:
    tree = files / "tree"
    (tree / "empty").mkdir(parents=True)
    (tree / "sub" / ("long" * 30)).mkdir(parents=True)
    (tree / "sub" / ("long" * 30) / ("name" * 40)).write_bytes(b"x" * 70_000)
    (tree / "run me").write_text("#!/bin/sh\necho ran\n")
    (tree / "run me").chmod(0o755)
    (tree / "secret").write_text("s")
    (tree / "secret").chmod(0o600)
    (tree / "link").symlink_to("run me")
    (tree / "dangling").symlink_to("/nosuch/place")
    (tree / "new\nline").write_text("n")

    async def test(made: Sandbox) -> None:
        await made.upload(tree, "copy of it")
        assert (await made.run("'./copy of it/link'", DEADLINE)).stdout.text == "ran\n"
        await made.download("copy of it", files / "back")

    place.check(test)
    assert _listing(files / "back") == _listing(tree)


def test_a_file_is_replaced_whole_and_keeps_its_mode(place: Place) -> None:
    async def test(made: Sandbox) -> None:
        await made.write_bytes("f", b"one", 0o750)
        await made.run("ln f other; ln -s f link", DEADLINE)
        await made.write_bytes("link", b"two")
        result = await made.run("stat -c %a f; cat f other; readlink link; ls -A", DEADLINE)
        assert result.stdout.text == "750\ntwoonef\nf\nlink\nother\n"

    place.check(test)


def test_what_cannot_be_read_or_written_says_why(place: Place, files: Path) -> None:
    async def test(made: Sandbox) -> None:
        await made.run("mkdir folder; echo x >file; mkfifo pipe; ln -s nosuch dangling", DEADLINE)

        async def kind_of(call: object) -> str:
            with pytest.raises(FileProblem) as problem:
                await call  # type: ignore[misc]
            return problem.value.kind

        assert await kind_of(made.read_bytes("nosuch")) == "missing"
        assert await kind_of(made.read_bytes("dangling")) == "missing"
        assert await kind_of(made.read_bytes("file/below")) == "missing"
        assert await kind_of(made.read_bytes("folder")) == "is_folder"
        assert await kind_of(made.read_bytes("pipe")) == "failed"
        assert await kind_of(made.read_bytes("")) == "missing"
        assert await kind_of(made.write_bytes("folder", b"")) == "is_folder"
        assert await kind_of(made.write_bytes("pipe", b"")) == "failed"
        assert await kind_of(made.download("nosuch", files / "x")) == "missing"
        assert await kind_of(made.download("pipe", files / "x")) == "failed"
        assert await kind_of(made.write_bytes("/proc/nosuch/x", b"")) in {"missing", "denied", "failed"}
        with pytest.raises(FileNotFoundError):
            await made.upload(files / "nosuch", "x")
        assert not (files / "x").exists()

    place.check(test)


def test_links_and_dots_mean_what_they_mean_inside(place: Place, files: Path) -> None:
    async def test(made: Sandbox) -> None:
        await made.run("mkdir -p a/b; echo inside >a/f; ln -s a/b link; ln -s /proc/version away", DEADLINE)
        assert await made.read_bytes("a/b/../f") == b"inside\n"
        assert await made.read_bytes("link/../f") == b"inside\n"
        await made.download(".", files / "all")
        assert os.readlink(files / "all" / "away") == "/proc/version"

    place.check(test)


def test_a_download_never_leaves_half_of_itself(place: Place, files: Path) -> None:
    (files / "back").write_text("old")

    async def test(made: Sandbox) -> None:
        await made.run("mkdir folder; echo new >folder/f", DEADLINE)
        with pytest.raises(FileProblem):
            await made.download("nosuch", files / "back")
        assert (files / "back").read_text() == "old"
        await made.download("folder/f", files / "back")
        assert (files / "back").read_text() == "new\n"
        assert [path.name for path in files.iterdir()] == ["back"]

    place.check(test)


HOSTILE: dict[str, list[tuple[str, bytes | None, str | None]]] = {
    "upwards": [("../evil", b"x", None)],
    "from the root": [("/tmp/evil", b"x", None)],
    "through a link": [("d", None, "/tmp"), ("d/evil", b"x", None)],
    "a link in a link": [("d", None, "/tmp"), ("d/evil", None, "/etc/passwd")],
    "over itself": [("d", None, "/etc/passwd"), ("d", b"x", None)],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_archive_from_inside_writes_nothing_outside(files: Path, name: str) -> None:
    spool = BytesIO()
    with tarfile.open(fileobj=spool, mode="w") as tar:
        folder = tarfile.TarInfo(".")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(folder)
        for path, data, link in HOSTILE[name]:
            entry = tarfile.TarInfo(path)
            if link:
                entry.type, entry.linkname = tarfile.SYMTYPE, link
            entry.size = len(data or b"")
            tar.addfile(entry, BytesIO(data or b""))
    spool.seek(0)
    with pytest.raises(ValueError, match=r"leads out|two entries|hard link"):
        unpack(spool, files / "in" / "target")
    assert [path.name for path in files.iterdir()] in ([], ["in"])
    assert not Path("/tmp/evil").exists()


def test_an_archive_from_inside_brings_no_devices_and_no_setuid(files: Path) -> None:
    spool = BytesIO()
    with tarfile.open(fileobj=spool, mode="w") as tar:
        for path, kind in (("d", tarfile.DIRTYPE), ("d/null", tarfile.CHRTYPE), ("d/f", tarfile.REGTYPE)):
            entry = tarfile.TarInfo(path)
            entry.type, entry.mode = kind, 0o6755
            tar.addfile(entry)
    spool.seek(0)
    with nothing_left():
        unpack(spool, files / "target")
    assert [path.name for path in (files / "target" / "d").iterdir()] == ["f"]
    assert (files / "target" / "d" / "f").stat().st_mode & 0o7777 == 0o755


def _listing(folder: Path) -> dict[str, tuple[int, object]]:
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None,
        )
        for path in folder.rglob("*")
    }
