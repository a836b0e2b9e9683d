"""Whatever a sandbox has to search with, the same is found."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.components import leave_out
from tests.tools.calls import call, error
from tests.tools.everyday.boxes import tools_in
from tools.dispatcher import ToolError
from tools.everyday.host_paths import HostFiles
from tools.everyday.search_patterns import common_pattern, expand_globs, glob_regex, grep_pattern
from tools.sandboxes.base import FileProblem

COMMANDS = [
    "sh",
    "bash",
    "find",
    "grep",
    "tr",
    "wc",
    "printf",
    "cat",
    "mkdir",
    "mv",
    "ls",
    "dirname",
    "basename",
    "env",
    "head",
    "tar",
    "sha256sum",
    "chmod",
    "rm",
    "sleep",
    "sed",
    "test",
    "touch",
    "cp",
    "ln",
]
EXTRA = {"rg": ("rg", "python3"), "python": ("python3",), "grep": ()}

TREE = r"""
mkdir -p src/deep/er .hidden .git 'odd [name]' 'sp ace'
printf 'def alpha(x):\n    return x + 1\n' >src/a.py
printf 'class Beta:\n    pass  # TODO: alpha\n' >src/deep/b.py
printf 'alpha = 1\r\nbeta = 22\r\n' >src/deep/er/c.ini
printf 'no end alpha' >'sp ace/d e.txt'
printf 'Alpha 训练 alpha_9\n' >'odd [name]/-f:1:x.py'
printf 'alpha\n' >.hidden/h.txt
printf 'alpha\n' >.git/config
printf 'alpha\n\000\n' >binary.bin
printf 'alpha \377 latin\n' >latin.txt
printf '*.ini\n' >.gitignore
ln -s src/a.py link.py
ln -s src linked
"""
SEARCHES: list[dict[str, Any]] = [
    {"pattern": "alpha"},
    {"pattern": "ALPHA", "ignore_case": True},
    {"pattern": r"^\s+return\s\w+ \+ \d$"},
    {"pattern": r"(?:alpha|beta) = \d{1,2}"},
    {"pattern": r"\balpha\b"},
    {"pattern": r"[[:alpha:]]+_[0-9]"},
    {"pattern": r"a.*?a"},
    {"pattern": r"[^\w\s]:"},
    {"pattern": "alpha", "glob": "*.py"},
    {"pattern": "alpha", "glob": "src/**/*.{py,ini}"},
    {"pattern": "alpha", "path": "src/deep"},
    {"pattern": "alpha", "path": "sp ace/d e.txt"},
    {"pattern": "alpha", "path": "odd [name]/-f:1:x.py"},
    {"pattern": "alpha", "max_results": 3},
    {"pattern": "nothing like it"},
    {},
    {"glob": "*.py"},
    {"glob": "src/*"},
    {"glob": "[a-l]*.{txt,bin}", "path": "."},
]


async def answers(engine: str, commands: Path) -> list[dict[str, Any]]:
    async with tools_in("local", env={"PATH": str(commands)}) as tools:
        await tools.run(TREE)
        found = "; ".join(f"command -v {name}" for name in ("rg", "python3"))
        there = await tools.call("terminal", command=f"{found}; true")
        assert len(there["stdout"].split()) == len(EXTRA[engine])
        return [await tools.call("search_files", **search) for search in SEARCHES]


def test_all_engines_find_the_same(tmp_path: Path) -> None:
    if not shutil.which("rg"):
        leave_out("ripgrep")
    told = {}
    for engine, extra in EXTRA.items():
        folder = tmp_path / engine
        folder.mkdir()
        for name in (*COMMANDS, *extra):
            if real := shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/usr/local/bin"):
                (folder / name).symlink_to(real)
        told[engine] = asyncio.run(answers(engine, folder))
    for search, *found in zip(SEARCHES, told["rg"], told["python"], told["grep"], strict=True):
        assert found[0] == found[1] == found[2], search
    plain = told["rg"][0]["matches"]
    assert {match["path"] for match in plain} == {
        ".hidden/h.txt",
        "latin.txt",
        "odd [name]/-f:1:x.py",
        "sp ace/d e.txt",
        "src/a.py",
        "src/deep/b.py",
        "src/deep/er/c.ini",
    }
    assert told["rg"][11]["matches"] == [{"path": "sp ace/d e.txt", "line": 1, "text": "no end alpha"}]
    assert len(told["rg"][13]["matches"]) == 3
    assert told["rg"][13]["more"]
    assert told["rg"][16]["files"] == ["odd [name]/-f:1:x.py", "src/a.py", "src/deep/b.py"]


def test_the_host_is_searched_inside_the_allowed_folders(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "secret.txt").write_text("needle")
    (tmp_path / "w" / "out").symlink_to(tmp_path)
    (tmp_path / "w" / "in.txt").write_text("a\nneedle\n")
    host = {"toolsets": ("files",), "file_roots": (tmp_path / "w",)}
    found = call("search_files", {"pattern": "needle"}, **host)
    assert found["matches"] == [{"path": "in.txt", "line": 2, "text": "needle"}]
    assert (
        call("search_files", {"pattern": "needle", "path": "in.txt"}, **host)["matches"][0]["path"]
        == "in.txt"
    )
    assert error("search_files", {"pattern": "needle", "path": "out"}, **host)[0] == "outside"
    assert error("search_files", {"pattern": "needle", "path": "nowhere"}, **host)[0] == "missing"


def test_no_link_put_in_the_way_leads_out_of_the_folder(tmp_path: Path) -> None:
    """A background process swaps a folder with a link, over and over, while it is searched."""
    work, outside = tmp_path / "w", tmp_path / "outside"
    for folder in (work / "a", outside):
        (folder / "deep").mkdir(parents=True)
    (work / "a" / "deep" / "in.txt").write_text("inside\n")
    (outside / "deep" / "in.txt").write_text("secret\n")
    (work / "link").symlink_to(outside)
    swap = "while :; do mv -T a b; mv -T link a; mv -T a link; mv -T b a; done 2>/dev/null"
    swapping = subprocess.Popen(["sh", "-c", swap], cwd=work)
    host = {"toolsets": ("files",), "file_roots": (work,)}
    try:
        for search in [{"path": "a"}, {"path": "a/deep"}, {"path": "."}] * 4:
            assert "secret" not in json.dumps(call("search_files", {"pattern": ".", **search}, **host))
    finally:
        swapping.kill()
        swapping.wait()


def test_a_folder_put_in_the_way_after_the_check_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / "w" / "a").mkdir(parents=True)
    (tmp_path / "outside").mkdir()

    class Raced(HostFiles):
        def locate(self, path: str) -> Path:
            found = super().locate(path)
            (tmp_path / "w" / "a").rmdir()
            (tmp_path / "w" / "a").symlink_to(tmp_path / "outside")
            return found

    with pytest.raises(FileProblem) as raised:
        Raced([tmp_path / "w"]).open("a")
    assert raised.value.kind in ("denied", "missing")


def test_what_some_engines_lack_is_refused_by_all() -> None:
    for pattern in (r"(?=a)", r"(?<!a)b", r"(a)\1", "a++", "[", "*a", "(?P=x)"):
        with pytest.raises(ToolError) as raised:
            common_pattern(pattern)
        assert raised.value.type == "invalid_pattern"
    assert common_pattern(r"a\\1+") == r"a\\1+"
    for pattern in (r"\pL", "(?i)a", r"\z"):
        with pytest.raises(ToolError):
            grep_pattern(pattern)
    assert grep_pattern(r"[\w.]+?\d") == "[[:alnum:]_.]+[0-9]"


def test_globs() -> None:
    import re

    assert expand_globs("*.{a,b{c,d}}") == ["*.a", "*.bc", "*.bd"]
    assert expand_globs("{a}" * 300) == ["a" * 300]
    for many in ("{a,b}" * 17, "{a}" * 3000, "{" * 900, "a," * 400 + "{,}" * 50, "a" * 5000):
        with pytest.raises(ToolError) as raised:
            expand_globs(many)
        assert raised.value.type == "invalid_pattern"
    with pytest.raises(ToolError):
        expand_globs("*.{a")
    fits = {"*.py": ["a.py", "d/e/a.py"], "src/**/*.py": ["src/a.py", "src/d/e/a.py"], "src/*": ["src/x"]}
    for glob, paths in fits.items():
        assert all(re.fullmatch(glob_regex(glob), path) for path in paths)
    assert not re.fullmatch(glob_regex("src/*"), "src/d/x")
    assert not re.fullmatch(glob_regex("src/*.py"), "lib/src/a.py")
