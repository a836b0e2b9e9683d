"""Reading, writing and changing files: in a sandbox, and on the host only inside the allowed folders."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.tools.calls import call, error
from tests.tools.everyday.boxes import every_kind, tools_in
from tools.dispatcher import ToolError
from tools.everyday.host_paths import HostFiles


@every_kind
def test_a_file_is_written_read_and_changed(kind: str) -> None:
    async def main() -> None:
        name = "d/a 'b' \"c\".txt"
        async with tools_in(kind) as tools:
            text = "".join(f"line {n} 训练\n" for n in range(1, 1001))
            assert (await tools.call("write_file", path=name, content=text))["size"] == len(text.encode())
            read = await tools.call("read_file", path=name, start_line=999)
            assert (read["content"], read["lines"]) == ("line 999 训练\nline 1000 训练\n", 1000)
            assert (read["start_line"], read["end_line"], read["size"]) == (999, 1000, len(text.encode()))
            assert (await tools.call("read_file", path=name, start_line=2, lines=1))[
                "content"
            ] == "line 2 训练\n"
            assert "ends at line 1000" in (await tools.call("read_file", path=name, start_line=5000))["hint"]
            await tools.run("chmod 751 d/*; ls -l d")
            await tools.call("patch", path=name, old_text="line 7 ", new_text="line seven ")
            assert (await tools.run("stat -c %a d/*; sed -n 7p d/*")) == "751\nline seven 训练\n"
            kind_of_error, said = await tools.error("patch", path=name, old_text="line  8 训练", new_text="")
            assert kind_of_error == "not_found"
            assert "line 8 训练" in said

    asyncio.run(main())


@every_kind
def test_what_cannot_be_read_as_text_is_said(kind: str) -> None:
    async def main() -> None:
        async with tools_in(kind) as tools:
            await tools.run(
                "head -c 3000 /dev/zero >binary; mkdir folder; printf 'a\\377b\\n' >latin; : >empty"
            )
            assert (await tools.call("read_file", path="binary"))["binary"]
            assert (await tools.call("read_file", path="binary"))["size"] == 3000
            assert (await tools.call("read_file", path="latin"))["content"] == "a\ufffdb\n"
            await tools.call("write_file", path="open", content="1\n2\nno newline")
            assert (await tools.call("read_file", path="open"))["content"] == "1\n2\nno newline"
            window = await tools.call("read_file", path="open", lines=1)
            assert (window["content"], window["hint"]) == (
                "1\n",
                "more lines follow: go on with start_line=2",
            )
            assert (await tools.call("read_file", path="empty"))["lines"] == 0
            assert (await tools.error("patch", path="latin", old_text="a", new_text="b"))[0] == "binary"
            assert (await tools.error("read_file", path="folder"))[0] == "is_folder"
            assert (await tools.error("read_file", path="nothing"))[0] == "missing"
            assert (await tools.error("read_file", path="latin", lines=0))[0] == "invalid_arguments"

    asyncio.run(main())


@every_kind
def test_a_diff_changes_all_its_files_or_none(kind: str) -> None:
    diff = "--- a/one\n+++ b/one\n@@ -1 +1 @@\n-1\n+one\n--- a/two\n+++ b/two\n@@ -1 +1 @@\n-{}\n+two\n"

    async def main() -> None:
        async with tools_in(kind) as tools:
            await tools.run("echo 1 >one; echo 2 >two")
            assert (await tools.error("patch", diff=diff.format("9")))[0] == "not_found"
            assert await tools.run("cat one two") == "1\n2\n"
            assert (await tools.call("patch", diff=diff.format("2")))["paths"] == ["one", "two"]
            assert await tools.run("cat one two") == "one\ntwo\n"

    asyncio.run(main())


@every_kind
def test_a_diff_that_names_a_file_twice_loses_nothing(kind: str) -> None:
    piece = "--- a/{0}\n+++ b/{0}\n@@ -{1} +{1} @@\n-{1}\n+{2}\n"

    async def main() -> None:
        async with tools_in(kind) as tools:
            await tools.run("printf '1\\n2\\n3\\n' >f; mkdir d; ln -s . here")
            diff = "".join(
                piece.format(name, line, new)
                for name, line, new in (("f", 1, "one"), ("./f", 2, "two"), ("here/d/../f", 3, "three"))
            )
            assert (await tools.call("patch", diff=diff))["paths"] == ["f", "here/d/../f"]
            assert await tools.run("cat f") == "one\ntwo\nthree\n"

    asyncio.run(main())


@every_kind
def test_a_diff_that_makes_a_file_makes_no_other_longer(kind: str) -> None:
    diff = "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+new\n"

    async def main() -> None:
        async with tools_in(kind) as tools:
            assert (await tools.call("patch", diff=diff))["ok"]
            assert (await tools.error("patch", diff=diff))[0] == "exists"
            assert await tools.run("cat f") == "new\n"

    asyncio.run(main())


def test_sec_06_a_link_in_the_sandbox_leads_to_nothing_of_the_host(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")

    async def main() -> None:
        async with tools_in("bubblewrap") as tools:
            await tools.run(f"ln -s {secret} p; ln -s / root")
            assert (await tools.error("read_file", path="p"))[0] == "missing"
            assert (await tools.error("read_file", path=f"root{secret}"))[0] == "missing"
            assert (await tools.error("read_file", path=str(secret)))[0] == "missing"
            await tools.call("write_file", path="p", content="changed")
            assert secret.read_text() == "of the host"

    asyncio.run(main())


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "w").mkdir()
    (tmp_path / "w-evil").mkdir()
    (tmp_path / "w-evil" / "x").write_text("outside")
    return tmp_path / "w"


def on_host(work: Path) -> dict[str, Any]:
    return {"toolsets": ("files",), "file_roots": (work,)}


def test_files_of_the_host_are_read_and_written_inside(work: Path) -> None:
    assert call("write_file", {"path": "a/b/c.txt", "content": "hello\n"}, **on_host(work))["ok"]
    os.chmod(work / "a/b/c.txt", 0o640)
    (work / "inner").symlink_to(work / "a")
    assert call("read_file", {"path": "inner/b/c.txt"}, **on_host(work))["content"] == "hello\n"
    assert call("read_file", {"path": str(work / "a/../a/b/c.txt")}, **on_host(work))["lines"] == 1
    patch = {"path": "a/b/c.txt", "old_text": "hello", "new_text": "bye"}
    assert call("patch", patch, **on_host(work))["replaced"] == 1
    assert (work / "a/b/c.txt").read_text() == "bye\n"
    assert (work / "a/b/c.txt").stat().st_mode & 0o777 == 0o640
    assert [p.name for p in (work / "a/b").iterdir()] == ["c.txt"]
    assert error("read_file", {"path": "a"}, **on_host(work))[0] == "is_folder"
    assert error("read_file", {"path": "."}, **on_host(work))[0] == "is_folder"
    assert error("read_file", {"path": "a/b/c.txt/d"}, **on_host(work))[0] == "missing"


@pytest.mark.parametrize("tool", ["read_file", "write_file"])
def test_sec_06_a_link_out_of_the_folder_is_refused(work: Path, tool: str) -> None:
    (work / "p").symlink_to("/etc/passwd")
    (work / "q").symlink_to("../w-evil")
    (work / "r").symlink_to("q")
    before = Path("/etc/passwd").read_bytes()
    content = {"content": "changed"} if tool == "write_file" else {}
    for path in ("p", "q/x", "r/x", "q/new"):
        assert error(tool, {"path": path, **content}, **on_host(work))[0] == "outside"
    assert Path("/etc/passwd").read_bytes() == before
    assert [p.name for p in (work.parent / "w-evil").iterdir()] == ["x"]
    assert (work.parent / "w-evil/x").read_text() == "outside"


@pytest.mark.parametrize("tool", ["read_file", "write_file", "search_files"])
def test_sec_07_a_sibling_of_the_same_beginning_is_refused(work: Path, tool: str) -> None:
    content = {"content": "changed"} if tool == "write_file" else {}
    evil = work.parent / "w-evil" / "x"
    for path in (str(evil), f"{work}/../w-evil/x", "../w-evil/x", "/", "/etc/passwd"):
        assert error(tool, {"path": path, **content}, **on_host(work))[0] == "outside"
    assert evil.read_text() == "outside"


def test_a_link_put_in_the_way_after_the_check_is_no_way_out(work: Path) -> None:
    """The race is decided here: the path is checked as it was, and opened as it is now."""
    files = HostFiles([work])
    (work / "d").mkdir()
    (work / "d" / "x").write_text("inside")

    class Raced(HostFiles):
        def locate(self, path: str) -> Path:
            found = super().locate(path)
            (work / "d").rename(work / "old")
            (work / "d").symlink_to(work.parent / "w-evil")
            return found

    assert asyncio.run(files.read_bytes("d/x")) == b"inside"
    with pytest.raises(Exception, match="d/x"):
        asyncio.run(Raced([work]).read_bytes("d/x"))
    (work / "d").unlink()
    (work / "old").rename(work / "d")
    with pytest.raises(Exception, match="d/x"):
        asyncio.run(Raced([work]).write_bytes("d/x", b"changed"))
    assert (work.parent / "w-evil/x").read_text() == "outside"


@pytest.mark.parametrize("tool", ["read_file", "write_file", "patch", "search_files"])
def test_a_working_folder_that_is_gone_is_said(work: Path, tool: str) -> None:
    work.rmdir()
    more = {"write_file": {"content": ""}, "patch": {"old_text": "a", "new_text": "b"}}.get(tool, {})
    kind, said = error(tool, {"path": "x", **more}, **on_host(work))
    assert kind == "missing"
    assert f"the working folder {work} is gone" in said


def test_only_plain_files_are_opened(work: Path) -> None:
    os.mkfifo(work / "pipe")
    assert error("read_file", {"path": "pipe"}, **on_host(work))[0] == "failed"
    assert error("write_file", {"path": "pipe", "content": ""}, **on_host(work))[0] == "denied"
    (work / "circle").symlink_to("circle")
    assert error("read_file", {"path": "circle"}, **on_host(work))[0] in ("invalid_path", "denied")
    with pytest.raises(ToolError, match="NUL"):
        HostFiles([work]).locate("a\0b")
