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
from tests.tools.sandboxes.places import DEADLINE, LocalPlace, Place
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
    (tree / "dangling").symlink_to("nosuch")
    (tree / "sub" / "up").symlink_to("../secret")
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
        await made.run("mkdir -p a/b; echo inside >a/f; ln -s a/b link", DEADLINE)
        await made.run("ln -s /proc/version away; ln -s ../../x a/up; ln -s link/../../x a/b/by", DEADLINE)
        assert await made.read_bytes("a/b/../f") == b"inside\n"
        assert await made.read_bytes("link/../f") == b"inside\n"
        await made.download(".", files / "all")
        assert set(_listing(files / "all")) == {"a", "a/b", "a/f", "link"}

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


def test_a_download_has_a_limit(place: Place, files: Path) -> None:
    async def test(made: Sandbox) -> None:
        await made.run("head -c 1000 /dev/zero >f; mkdir d; for i in 1 2 3; do echo >d/$i; done", DEADLINE)
        await made.run("dd if=/dev/zero of=sparse bs=1 count=1 seek=50000000", DEADLINE)
        await made.download("f", files / "f", 1000)
        for name, limit in (("f", 999), ("d", 4 * 4096), ("sparse", MIB)):
            with pytest.raises(FileProblem, match=f"more than {limit} bytes") as problem:
                await made.download(name, files / "x", limit)
            assert problem.value.kind == "too_large"
        await made.download("d", files / "d", 4 * 4096 + 3)

    place.check(test)
    assert sorted(path.name for path in files.iterdir()) == ["d", "f"]


def test_what_stands_in_the_way_or_may_not_be_written_leaves_nothing_beside_the_target(
    place: Place, files: Path
) -> None:
    (files / "full").mkdir()
    (files / "full" / "f").write_text("mine")
    (files / "empty").mkdir()

    async def test(made: Sandbox) -> None:
        await made.run("mkdir -p d/e; echo x >d/e/f; chmod 500 d/e d", DEADLINE)
        with pytest.raises(FileExistsError, match="full is there, and not empty"):
            await made.download("d", files / "full")
        await made.download("d", files / "empty")

    place.check(test)
    assert sorted(path.name for path in files.iterdir()) == ["empty", "full"]
    assert [(files / "empty" / name).stat().st_mode & 0o777 for name in (".", "e")] == [0o500, 0o500]
    assert (files / "empty/e/f").read_text() == "x\n"


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b"") -> bytes:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.size = kind, link, len(data)
    return entry.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512)


def _changed(header: bytes, at: int, data: bytes) -> bytes:
    """A header with other bytes somewhere, and the sum that goes with them."""
    header = header[:at] + data + header[at + len(data) :]
    header = header[:148] + b" " * 8 + header[156:]
    return header[:148] + b"%06o\0 " % sum(header) + header[156:]


SPARSE = _changed(_changed(_member("f", tarfile.GNUTYPE_SPARSE), 483, b"%011o\0" % (2 << 30)), 386, b"0" * 24)
TOP = _member("./", tarfile.DIRTYPE)
BROKEN = {
    "empty": b"",
    "no entry": bytes(1024),
    "not a tar": b"x" * 3000,
    "a link for a file": _member("f", tarfile.SYMTYPE, "/etc/passwd"),
    "a hard link for a file": _member("f", tarfile.LNKTYPE, "/etc/passwd"),
    "a pipe for a file": _member("f", tarfile.FIFOTYPE),
    "two files for one": _member("f", data=b"1") + _member("g", data=b"2"),
    "a link beside a file": _member("f", data=b"1") + _member("g", tarfile.SYMTYPE, "/etc/passwd"),
    "2 GiB of holes": SPARSE,
    "2 GiB of holes in a folder": TOP + SPARSE,
    "a size below nothing": _changed(_member("f"), 124, b"\xff" * 12),
    "a very deep folder": TOP + _member("a/" * 1990 + "x", tarfile.DIRTYPE),
    "a very long name": TOP + _member("a" * 300),
    "a name of 1 MiB": TOP + _member("a" * MIB),
    "names upon names": TOP + 2000 * _member("././@LongLink", tarfile.GNUTYPE_LONGNAME, data=b"x\0"),
    "a file that is a folder": TOP + _member("a", data=b"x") + _member("a/b"),
    "a folder that is a file": TOP + _member("a/b") + _member("a", data=b"x"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_whatever_comes_from_inside_is_a_file_or_one_error(tmp_path: Path, files: Path, name: str) -> None:
    (tmp_path / "archive").write_bytes(BROKEN[name] + bytes(1024 if name != "empty" else 0))
    (tmp_path / "bin").mkdir()
    tar = tmp_path / "bin" / "tar"
    tar.write_text(f"#!/bin/sh\nexec cat {tmp_path}/archive\n")
    tar.chmod(0o755)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"

    async def test(made: Sandbox) -> None:
        await made.write_bytes("f", b"x")
        with pytest.raises(FileProblem, match=r"^f: ") as problem:
            await made.download("f", files / "f")
        assert ".rl-cli" not in problem.value.message

    LocalPlace("local").check(test, env={"PATH": path})
    assert list(files.iterdir()) == []


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
        unpack(spool, files / "target", MIB)
    assert [path.name for path in files.iterdir()] in ([], ["target"])
    assert not Path("/tmp/evil").exists()


def test_an_archive_from_inside_brings_no_devices_and_no_setuid(files: Path) -> None:
    spool = BytesIO()
    with tarfile.open(fileobj=spool, mode="w") as tar:
        for path, kind in ((".", tarfile.DIRTYPE), ("d/null", tarfile.CHRTYPE), ("d/f", tarfile.REGTYPE)):
            entry = tarfile.TarInfo(path)
            entry.type, entry.mode = kind, 0o6755
            tar.addfile(entry)
    spool.seek(0)
    with nothing_left():
        unpack(spool, files / "target", MIB)
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
