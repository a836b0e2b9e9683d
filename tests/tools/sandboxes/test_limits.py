"""Control groups: what killed programs left is removed, wherever those had made it."""

from __future__ import annotations

import os
import secrets

from tests.components import leave_out
from tests.tools.sandboxes.leftovers import mark_of_the_dead
from tools.sandboxes.limits import PREFIX, find_base
from tools.sandboxes.owners import owner


def test_groups_of_killed_programs_below_another_group_are_removed() -> None:
    base = find_base()
    tops = [top for top in base.tops if os.access(top, os.W_OK)]
    if not base.folders or not tops:
        leave_out("the right to make control groups")
    another = tops[0] / f"another-{secrets.token_hex(8)}"
    dead, living = (another / f"{PREFIX}{mark}.0" for mark in (mark_of_the_dead(), owner()))
    for folder in (another, dead, living):
        folder.mkdir()
    try:
        find_base.__wrapped__()
        assert (dead.exists(), living.exists()) == (False, True)
    finally:
        living.rmdir()
        another.rmdir()
