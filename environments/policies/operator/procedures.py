"""Which procedure carries out which intent."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from environments.policies.operator import (
    batch_rows,
    batch_watching,
    batches,
    expecting,
    inspecting,
    names,
    remote,
    running,
    talking,
)
from environments.policies.operator.comparing import compare
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.intents import (
    Bare,
    BatchStats,
    BatchStatus,
    Best,
    Blocked,
    Compare,
    CompressBatch,
    Costs,
    Describe,
    EditConfig,
    ExportBatch,
    Help,
    Hold,
    HowLong,
    HowToTrain,
    Intent,
    ListBatches,
    ListEnvironments,
    ListRuns,
    ListTools,
    MakeSamples,
    MayMakeSamples,
    MayTrain,
    MergeBatch,
    Results,
    Resume,
    ResumeBatch,
    Select,
    ShowConfig,
    ShowSamples,
    Status,
    Stop,
    StopBatch,
    TestInference,
    Train,
    Unknown,
    WandbCompare,
    WandbList,
    WandbStop,
    Watch,
    WatchBatch,
)
from environments.policies.operator.ranking import best
from environments.policies.operator.resuming import resume
from environments.policies.operator.steps import Procedure
from environments.policies.operator.training import only_test, train
from environments.policies.operator.understanding import understand
from environments.policies.operator.wording import Voice

SAYS_RUN = re.compile(r"\b(?:runs?|training)\b|运行|训练", re.IGNORECASE)


def bare(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    """A name alone: the answer to "which environment?", or a wish to see what it is."""
    if not names.content_words(intent.subject):
        return talking.cannot(intent.subject, say)
    if (asked := _waiting_train(conversation)) is not None:
        return (
            yield from train(
                Train(intent.subject, asked.settings, sure=False, anyway=asked.anyway), say, conversation
            )
        )
    if not names.named(intent.subject):
        return talking.cannot(intent.subject, say)
    return (yield from inspecting.describe(intent, say, conversation))


def _waiting_train(conversation: Conversation) -> Train | None:
    """The last request, if it was one to train for which no environment could be chosen."""
    if not conversation.earlier:
        return None
    turn = conversation.earlier[-1]
    if turn.called("rl_select_environment"):
        return None
    return next((intent for intent in understand(turn.request) if isinstance(intent, Train)), None)


def status(intent: Status, say: Voice, conversation: Conversation) -> Procedure:
    if _means_batch(intent, conversation):
        return (yield from batch_watching.status(BatchStatus(intent.subject), say, conversation))
    return (yield from running.status(intent, say, conversation))


def watch(intent: Watch, say: Voice, conversation: Conversation) -> Procedure:
    if _means_batch(intent, conversation):
        return (yield from batch_watching.watch(WatchBatch(intent.subject), say, conversation))
    return (yield from running.keep_watching(intent, say, conversation))


def stop(intent: Stop, say: Voice, conversation: Conversation) -> Procedure:
    if _means_batch(intent, conversation) and not intent.every:
        return (yield from batch_watching.stop(StopBatch(intent.subject), say, conversation))
    return (yield from running.stop(intent, say, conversation))


def _means_batch(intent: Intent, conversation: Conversation) -> bool:
    """ "How is it going?" is about the batch where that is what the conversation last began."""
    names_run = SAYS_RUN.search(intent.subject) or names.named(intent.subject)
    return conversation.is_about_batch() and not names_run


PROCEDURES: dict[type[Intent], Callable[[Any, Voice, Conversation], Procedure]] = {
    Train: train,
    TestInference: only_test,
    ListEnvironments: inspecting.list_environments,
    Describe: inspecting.describe,
    Select: inspecting.select,
    ShowConfig: inspecting.show_config,
    EditConfig: inspecting.edit_config,
    Status: status,
    Watch: watch,
    Stop: stop,
    Resume: resume,
    WandbList: remote.list_in_wandb,
    WandbCompare: remote.compare_in_wandb,
    WandbStop: remote.stop_in_wandb,
    MakeSamples: batches.make,
    MayMakeSamples: batches.may_make,
    ResumeBatch: batches.go_on,
    BatchStatus: batch_watching.status,
    ListBatches: batch_watching.list_batches,
    WatchBatch: batch_watching.watch,
    StopBatch: batch_watching.stop,
    MergeBatch: batch_rows.merge,
    CompressBatch: batch_rows.compress,
    ExportBatch: batch_rows.export,
    BatchStats: batch_rows.stats,
    ShowSamples: batch_rows.show_samples,
    Results: running.results,
    Compare: compare,
    Best: best,
    HowLong: expecting.how_long,
    Costs: expecting.costs,
    ListRuns: running.list_runs,
    ListTools: talking.list_tools,
    Help: talking.help_text,
    HowToTrain: talking.how_to_train,
    MayTrain: talking.may_train,
    Hold: talking.hold,
    Blocked: talking.blocked,
    Bare: bare,
    Unknown: talking.unknown,
}
