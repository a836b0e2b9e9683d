"""Places of tasks, kept for the next: a folder, control groups and an agent, in which nothing is or runs."""

from __future__ import annotations

import asyncio
import atexit
import math
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tools.sandboxes.agent_start import forks_agents
from tools.sandboxes.base import Resources
from tools.sandboxes.idle_agent import IdleAgent
from tools.sandboxes.limits import ControlGroup
from tools.sandboxes.task_folders import TaskFolder

IDLE_SECONDS = 10.0
"""How long one may be needed by nobody while others are."""


@dataclass
class TaskPlace:
    """One that was left clean.

    Attributes:
        resources: What a task may use there.
        nursery: Whose child the agent is.
        pid: Of the program whose place it is.
    """

    agent: IdleAgent
    group: ControlGroup
    folder: TaskFolder
    resources: Resources
    nursery: object = field(default_factory=forks_agents)
    pid: int = field(default_factory=os.getpid)
    since: float = field(default_factory=time.monotonic)

    def usable(self) -> bool:
        return self.pid == os.getpid() and self.nursery is forks_agents() and self.agent.waits()

    def remove(self) -> None:
        """Blocks for a moment."""
        self.agent.close()
        if self.pid == os.getpid():  # in a fork the rest is the other's
            self.group.remove()
            self.folder.give_back(ended=True)


_kept: dict[Resources, deque[TaskPlace]] = {}
"""The one that was left last is at the end, and used first."""
_lock = threading.Lock()


def take_place(resources: Resources) -> TaskPlace | None:
    """One in which a task may use this."""
    with _lock:
        kept = _kept.get(resources, deque())
        for _ in range(len(kept)):
            place = kept.pop()
            if place.usable():
                return place
            place.since = 0
            kept.appendleft(place)
    return None


async def keep_place(place: TaskPlace) -> None:
    """Keeps it, and removes those that nobody has needed lately."""
    with _lock:
        _kept.setdefault(place.resources, deque()).append(place)
        before = time.monotonic() - IDLE_SECONDS
        unneeded = [old for kept in _kept.values() for old in _older(kept, before)]
    if unneeded:
        await asyncio.to_thread(_remove, unneeded)


def _older(kept: deque[TaskPlace], before: float) -> Iterator[TaskPlace]:
    while kept and kept[0].since < before:
        yield kept.popleft()


def _remove(places: Iterable[TaskPlace]) -> None:
    for place in places:
        place.remove()


def remove_places() -> None:
    """All that are kept. Blocks."""
    with _lock:
        places = [place for kept in _kept.values() for place in _older(kept, math.inf)]
    _remove(places)


atexit.register(remove_places)
