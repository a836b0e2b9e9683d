"""What a request can ask for, as types. `subject` is the text that may name an environment or a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from environments.policies.operator.settings import Problem, Settings


@dataclass(frozen=True)
class Intent:
    subject: str = ""


@dataclass(frozen=True)
class Train(Intent):
    settings: Settings = field(default_factory=Settings)
    sure: bool = True
    """False for verbs that need not mean training ("start X"): then X must be an environment's name."""
    anyway: bool = False
    """Start although the inference test shows no signal."""


@dataclass(frozen=True)
class TestInference(Intent):
    """Groups on the starting checkpoint, without training."""

    __test__ = False  # no test of ours, for pytest


@dataclass(frozen=True)
class ListEnvironments(Intent):
    pass


@dataclass(frozen=True)
class Describe(Intent):
    pass


@dataclass(frozen=True)
class Select(Intent):
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True)
class ShowConfig(Intent):
    pass


@dataclass(frozen=True)
class EditConfig(Intent):
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True)
class Status(Intent):
    pass


@dataclass(frozen=True)
class Watch(Intent):
    """Wait for the end of a run that goes on, judging it at its checks."""


@dataclass(frozen=True)
class Stop(Intent):
    every: bool = False


@dataclass(frozen=True)
class Resume(Intent):
    """Go on with a run that has ended, from its last good checkpoint."""

    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True)
class WandbList(Intent):
    """Projects, or the runs of the project that `subject` names."""


@dataclass(frozen=True)
class WandbCompare(Intent):
    pass


@dataclass(frozen=True)
class WandbStop(Intent):
    pass


@dataclass(frozen=True)
class Batch(Intent):
    """About a batch of training data."""

    name: str | None = None
    """None: the one of the conversation, else the newest."""


@dataclass(frozen=True)
class MakeSamples(Batch):
    input: str | None = None
    model: str | None = None
    toolsets: tuple[str, ...] | None = None
    distribution: str | None = None
    count: int | None = None
    each: int | None = None
    """Samples of each item."""
    settings: tuple[tuple[str, Any], ...] = ()
    """Others of the batch, by name."""
    then: tuple[Batch, ...] = ()
    """What is to be done with them."""


@dataclass(frozen=True)
class MayMakeSamples(Intent):
    """A question about making samples, answered without starting anything."""


@dataclass(frozen=True)
class ResumeBatch(Batch):
    pass


@dataclass(frozen=True)
class BatchStatus(Batch):
    pass


@dataclass(frozen=True)
class WatchBatch(Batch):
    """Wait for the end of what is done with it."""


@dataclass(frozen=True)
class StopBatch(Batch):
    now: bool = False
    """End what is in flight too."""


@dataclass(frozen=True)
class MergeBatch(Batch):
    pass


@dataclass(frozen=True)
class CompressBatch(Batch):
    max_tokens: int | None = None
    summarizer: str | None = None
    """The model that writes summaries; None: extracts."""


@dataclass(frozen=True)
class ExportBatch(Batch):
    format: str | None = None
    which: str = "merged"
    dedupe: bool = False
    pii: bool = False
    """Mask personal data."""


@dataclass(frozen=True)
class BatchStats(Batch):
    pass


@dataclass(frozen=True)
class ShowSamples(Batch):
    count: int = 3
    first: int = 1
    which: str = "merged"


@dataclass(frozen=True)
class ListBatches(Intent):
    """Which batches there are."""


@dataclass(frozen=True)
class Results(Intent):
    pass


@dataclass(frozen=True)
class Compare(Intent):
    count: int = 2
    """How many of the newest runs, where none is named."""


@dataclass(frozen=True)
class Best(Intent):
    """Which of all runs is the best."""


@dataclass(frozen=True)
class HowLong(Intent):
    """How long a training with these settings would take."""

    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True)
class Costs(Intent):
    pass


@dataclass(frozen=True)
class ListRuns(Intent):
    pass


@dataclass(frozen=True)
class ListTools(Intent):
    pass


@dataclass(frozen=True)
class Help(Intent):
    pass


@dataclass(frozen=True)
class HowToTrain(Intent):
    pass


@dataclass(frozen=True)
class Hold(Intent):
    """The request says not to start, or not to stop: nothing is done."""

    what: str = "train"
    """train, stop, or later"""


@dataclass(frozen=True)
class MayTrain(Intent):
    """ "Can you train X?": a question, answered without starting anything."""


@dataclass(frozen=True)
class Blocked(Intent):
    """An order with something in it that was not understood: nothing is done."""

    problems: tuple[Problem, ...] = ()
    about_data: bool = False


@dataclass(frozen=True)
class Bare(Intent):
    """A few words without a verb: a name, perhaps the answer to a question."""


@dataclass(frozen=True)
class Unknown(Intent):
    too_long: bool = False
