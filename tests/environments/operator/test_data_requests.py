"""Requests about training data: what is understood, in English and Chinese, and what starts nothing."""

from __future__ import annotations

import pytest

from environments.policies.operator.intents import (
    BatchStats,
    BatchStatus,
    Blocked,
    CompressBatch,
    ExportBatch,
    Hold,
    Intent,
    MakeSamples,
    MayMakeSamples,
    MergeBatch,
    ResumeBatch,
    ShowSamples,
    StopBatch,
    Unknown,
    WatchBatch,
)
from environments.policies.operator.understanding import understand

UNDERSTOOD: dict[type[Intent], str] = {
    BatchStatus: """
        how is the batch going
        how is the batch b-1 doing?
        is the batch done?
        status of the batch
        should I stop the batch?
        这批怎么样了
        批次 b-1 的进度如何？
        数据生成到哪了
        样本生成完成了吗？
        """,
    StopBatch: """
        stop the batch
        please cancel the data generation
        could you stop the batch?
        停止这批
        请停止数据生成
        停掉批次 b-1
        """,
    ResumeBatch: """
        resume the batch
        continue batch b-1
        继续这批
        恢复批次 b-1
        """,
    WatchBatch: """
        watch the batch
        盯着这批
        """,
    CompressBatch: """
        compress the batch
        compress the trajectories to 8k tokens
        压缩这批
        """,
    ExportBatch: """
        export the batch for TRL
        export the batch b-1 as parquet
        把这批导出为 TRL
        """,
    MergeBatch: "merge the batch",
    BatchStats: """
        stats of the batch
        how many samples does the batch have
        这批的统计
        """,
    ShowSamples: """
        show me 3 samples of the batch
        看看这批的样本
        """,
    MayMakeSamples: """
        how do I make SFT samples?
        should we generate some samples from prompts.jsonl?
        """,
    Hold: """
        don't stop the batch
        不要停止这批
        make 500 samples from prompts.jsonl tomorrow
        """,
    Blocked: """
        stop the batch if it gets too expensive
        make 500 samples from prompts.jsonl but do not use the web
        make 500 samples from prompts.jsonl at temperature 0.7
        """,
    Unknown: "make 500 SFT samples from prompts.jsonl and then train a model on them",
}


@pytest.mark.parametrize(
    ("request_", "kind"),
    [(line.strip(), kind) for kind, text in UNDERSTOOD.items() for line in text.strip().splitlines()],
)
def test_requests_about_data(request_: str, kind: type[Intent]) -> None:
    assert [type(intent) for intent in understand(request_)] == [kind]


@pytest.mark.parametrize(
    "request_",
    [
        "make 500 SFT samples from prompts.jsonl with the research tools, "
        "then compress and export them for TRL",
        "generate 500 samples from prompts.jsonl with the research tools; compress them, export to TRL",
        "用研究工具从 prompts.jsonl 生成 500 条 SFT 样本，然后压缩并导出为 TRL",
        "请用 prompts.jsonl 生成 500 条训练样本，使用 research 工具，之后压缩，再导出成 TRL 格式",
    ],
)
def test_from_one_sentence_to_a_set_for_trl(request_: str) -> None:
    [make] = understand(request_)
    assert isinstance(make, MakeSamples)
    assert (make.input, make.count, make.distribution) == ("prompts.jsonl", 500, "research")
    compress, export = make.then
    assert isinstance(compress, CompressBatch)
    assert isinstance(export, ExportBatch)
    assert export.format == "trl"


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [
        ("make 2k samples from ./data/p.csv", {"count": 2000, "input": "./data/p.csv"}),
        ("generate 1,500 trajectories from p.jsonl called math-1", {"count": 1500, "name": "math-1"}),
        (
            "create training data from p.jsonl with the math and terminal tools",
            {"toolsets": ("math", "terminal")},
        ),
        ("make samples from p.jsonl, 4 samples per prompt", {"each": 4}),
        ("generate SFT data from p.jsonl without tools with openai/gpt-5.5", {"toolsets": ()}),
        ("make 10 sft samples from p.jsonl with openai/gpt-5.5", {"model": "openai/gpt-5.5", "count": 10}),
        ("用 p.jsonl 生成 2 万条样本", {"count": 20_000}),
        (
            "用 stop-the-batch.jsonl 生成 20 条样本，每个提示 4 条",
            {"input": "stop-the-batch.jsonl", "each": 4},
        ),
        ("用 openai/gpt-5.5 从 p.jsonl 生成 30 条样本，使用终端工具", {"toolsets": ("terminal",)}),
    ],
)
def test_what_is_made_is_read_with_its_figures(request_: str, wanted: dict[str, object]) -> None:
    [make] = understand(request_)
    assert isinstance(make, MakeSamples), make
    assert {name: getattr(make, name) for name in wanted} == wanted


@pytest.mark.parametrize(
    "request_",
    [
        "train gsm8k-mini with batch size 64",
        "set grpo.batch_size to 64",
        "what is the batch size?",
        "批大小是多少",
        "how is it going?",
        "stop the run",
        "train gsm8k-mini for 40 steps on the training data",
        "show results",
    ],
)
def test_what_is_about_training_stays_so(request_: str) -> None:
    assert not any("Batch" in type(i).__name__ or "Samples" in type(i).__name__ for i in understand(request_))
