"""A folder is used again only where nothing of its task can be in it; nothing outside of it is touched."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tools.sandboxes.base import SandboxConfig
from tools.sandboxes.local import Local


def after(command: str) -> tuple[str, str]:
    """Where the task of a command was, and what the next task finds: its place's inode and its contents."""

    async def main() -> tuple[str, str]:
        first, then = Local(SandboxConfig("local")), Local(SandboxConfig("local"))
        await first.start()
        inode = Path(first.workdir).stat().st_ino
        await first.run(command, 10)
        await first.stop()
        assert not Path(first.workdir).exists()
        await then.start()
        try:
            found = await then.run("cd .. && ls -A . * && stat -c %a . *", 10)
            same = Path(then.workdir).stat().st_ino == inode and then.workdir != first.workdir
            return "the same" if same else "another", found.stdout.text
        finally:
            await then.stop()

    return asyncio.run(main())


FRESH = ".:\nhome\nprivate\ntmp\nwork\n\nhome:\n\nprivate:\n\ntmp:\n\nwork:\n700\n755\n755\n755\n755\n"


@pytest.mark.parametrize(
    "command",
    [
        "true",
        "echo x >f; echo x >~/.f; mktemp; ln -s / l; mkfifo p",
        "mkdir -p d/e; echo x >d/e/f; chmod 0 d/e d",
    ],
    ids=["nothing", "files", "folders"],
)
def test_what_a_task_put_into_its_folder_is_not_in_the_next_ones(command: str) -> None:
    assert after(command) == ("the same", FRESH)


@pytest.mark.parametrize(
    "command",
    ["chmod 777 ~", "rmdir ~ && mkdir ~", "touch ../more", "rmdir ../tmp", "mv ../home ../h", "chmod 0 .."],
)
def test_a_folder_that_is_not_as_it_was_made_is_used_by_nobody_else(command: str) -> None:
    assert after(command)[1] == FRESH


def test_a_link_in_a_folders_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "of the person").write_text("kept")
    (tmp_path / "d").mkdir()
    assert after(f"rmdir ~ && ln -s '{tmp_path}' ~")[1] == FRESH
    assert (tmp_path / "of the person").read_text() == "kept"
    assert (tmp_path / "d").is_dir()
