"""Folders of the host: they go with whatever commands put there, and what cannot go is in nobody's way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.components import mounts
from tests.tools.sandboxes.leftovers import mark_of_the_dead
from tools.sandboxes.host_folders import PREFIX, new_folder, remove_folder
from tools.sandboxes.owners import owner

REPOSITORY = Path(__file__).parents[3]
DEEP = "import os; [(os.mkdir('dd'), os.chdir('dd')) for _ in range(1500)]"


NEW_PROGRAM = """
import os, tempfile
from tools.sandboxes.host_folders import new_folder
own = new_folder().parent.name
print(*(name for name in os.listdir(tempfile.gettempdir()) if name != own))
"""


def new_program(folder: Path, *started_by: str) -> str:
    """What a new program finds in `folder`, the place for its folders, once it has one itself."""
    done = subprocess.run(
        [*started_by, sys.executable, "-P", "-c", NEW_PROGRAM],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def left_over(folder: Path) -> Path:
    """The folder of a program that has ended."""
    made = folder / f"{PREFIX}{mark_of_the_dead()}"
    made.mkdir()
    return made


def test_a_folder_goes_however_deep_and_whatever_its_modes() -> None:
    folder = new_folder()
    subprocess.run(["sh", "-c", "mkdir -p m/n; echo x >m/f; chmod 0 m/f m/n m"], cwd=folder, check=True)
    subprocess.run([sys.executable, "-c", DEEP], cwd=folder, check=True)
    remove_folder(folder)
    assert not folder.exists()


def test_what_is_mounted_in_a_folder_stays_as_it_is(tmp_path: Path) -> None:
    mounts()
    (tmp_path / "of the host").mkdir(mode=0o750)
    folder = new_folder()
    (folder / "d" / "m").mkdir(parents=True)
    subprocess.run(["mount", "--bind", tmp_path, folder / "d" / "m"], check=True)
    try:
        remove_folder(folder)
        assert (tmp_path / "of the host").stat().st_mode & 0o777 == 0o750
    finally:
        mounted = next(
            line.split()[1]
            for line in Path("/proc/self/mounts").read_text().splitlines()
            if str(folder) in line
        )
        subprocess.run(["umount", mounted], check=True)
    remove_folder(folder)
    assert not folder.exists()


def test_what_a_killed_program_left_is_removed_by_the_next(tmp_path: Path) -> None:
    (left_over(tmp_path) / "d").mkdir()
    assert new_program(tmp_path) == ""


def test_a_left_over_that_cannot_be_removed_is_in_nobodys_way(tmp_path: Path) -> None:
    folder = left_over(tmp_path)
    (folder / "f").touch()
    if subprocess.run(["chattr", "+i", folder / "f"], check=False).returncode != 0:
        folder.chmod(0)
        return
    try:
        assert new_program(tmp_path) == folder.name
    finally:
        subprocess.run(["chattr", "-i", folder / "f"], check=True)


def test_what_belongs_to_another_container_of_the_same_name_stays(tmp_path: Path) -> None:
    mounts()
    folder = tmp_path / f"{PREFIX}{owner()}"
    folder.mkdir()
    assert new_program(tmp_path, "unshare", "--pid", "--fork", "--mount-proc") == folder.name
