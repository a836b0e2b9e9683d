"""Requests about training data: what is understood, in English and Chinese, and what starts nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from environments.policies.operator.intents import (
    BatchStats,
    BatchStatus,
    Blocked,
    CompressBatch,
    ExportBatch,
    Hold,
    Intent,
    ListBatches,
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

SHOW = ShowSamples()
BEST = ("best_of", 4)
UNDERSTOOD: dict[type[Intent], str] = {
    BatchStatus: """
        how is the batch going
        how is the batch b-1 doing?
        is the batch done?
        why did the batch stop?
        when will the batch be done?
        status of the batch
        should I stop the batch?
        这批怎么样了
        批次 b-1 的进度如何？
        数据生成到哪了
        样本生成完成了吗？
        """,
    StopBatch: """
        stop the batch
        stop the last batch
        pause the batch
        please cancel the data generation
        could you stop the batch?
        停止这批
        请停止数据生成
        停掉批次 b-1
        停止生成样本
        """,
    ResumeBatch: """
        resume the batch
        continue batch b-1
        continue generating samples
        resume the failed batch b-1
        继续生成数据
        继续这批
        恢复批次 b-1
        """,
    WatchBatch: """
        watch the batch
        tell me when the batch is done
        这批做完了告诉我
        盯着这批
        """,
    CompressBatch: """
        compress the batch
        compress the trajectories to 8k tokens
        compress them
        压缩这批
        """,
    ExportBatch: """
        export the batch for TRL
        export the batch b-1 as parquet
        export it for TRL
        把这批导出为 TRL
        """,
    MergeBatch: "merge the batch",
    BatchStats: """
        stats of the batch
        how many samples does the batch have
        how many samples failed
        这批花了多少钱
        这批的统计
        """,
    ShowSamples: """
        show me 3 samples of the batch
        看看这批的样本
        """,
    ListBatches: """
        list the batches
        which batches are there?
        有哪些批次
        """,
    MayMakeSamples: """
        how do I make SFT samples?
        should we generate some samples from prompts.jsonl?
        how much will 500 samples from prompts.jsonl cost?
        """,
    Hold: """
        don't stop the batch
        不要停止这批
        make 500 samples from prompts.jsonl tomorrow
        """,
    Blocked: """
        stop the batch if it gets too expensive
        make 500 samples from prompts.jsonl but do not use the web
        make 500 samples from prompts.jsonl at temperature 0.7 and temperature 0.9
        make 500 samples from prompts.jsonl at temperature 70%
        export the batch for TRL at temperature 0.7
        make 500 samples from prompts.jsonl for at most 5 dollars
        make samples from prompts.jsonl, spend at most five dollars
        用 prompts.jsonl 生成样本，最多花五美元
        make samples from prompts.jsonl, the best 4
        make 3 samples from prompts.jsonl without tools in docker
        make 500 samples from prompts.jsonl and other.jsonl
        make 500 samples from /data/my prompts/prompts.jsonl
        make -5 samples from prompts.jsonl
        make 5 browser samples from prompts.jsonl
        make 1.5k samples from prompts.jsonl
        make samples from prompts.jsonl called ../../x
        make 5 samples from prompts.jsonl; delete the batch
        make 5 samples from prompts.jsonl, then stop
        停止用 prompts.jsonl 生成样本
        make 5 samples from prompts.jsonl and stop the run
        make 5 samples from prompts.jsonl then resume the training
        stop batch alpha and resume batch beta
        stop all batches
        resume batch alpha with openai/gpt-5.5
        export 10 rows of the batch for TRL
        export the first rows of the batch for TRL
        export some rows of the batch for TRL
        export the discarded rows of the batch for TRL
        export the batch to out.jsonl for TRL
        merge the batch, requiring reasoning
        重新压缩这批，用 Qwen/Qwen3-8B 的分词器
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
        "用prompts.jsonl做五百条训练数据，用研究工具，再压缩，导出TRL",
        "Make 500 samples from prompts.jsonl with the research tools. Compress them. Export them for TRL.",
        "I want five hundred SFT samples from prompts.jsonl with the research tools; "
        "compress them and export for TRL",
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
            'make 5 samples from "my prompts.jsonl" in the batch "stop"',
            {"input": "my prompts.jsonl", "name": "stop"},
        ),
        ("从“问题.jsonl”生成 5 条样本", {"input": "问题.jsonl", "count": 5}),
        ("make 5 samples from the dataset openai/gsm8k", {"input": "openai/gsm8k", "model": None}),
        ("make 10 samples per prompt from p.jsonl", {"each": 10, "count": None}),
        ("make 20 samples from p.jsonl in a batch called math-1", {"count": 20, "name": "math-1"}),
        (
            "make some samples based on p.jsonl using openai/gpt-5.5 and the math tools",
            {"toolsets": ("math",)},
        ),
        ("帮我生成 5 条 SFT 数据，输入是 p.jsonl", {"input": "p.jsonl", "count": 5}),
        ("make 9 samples from p.jsonl and show them to me", {"count": 9, "then": (SHOW,)}),
        ("generate a dataset from p.tsv", {"input": "p.tsv"}),
        (
            "用 stop-the-batch.jsonl 生成 20 条样本，每个提示 4 条",
            {"input": "stop-the-batch.jsonl", "each": 4},
        ),
        ("用 openai/gpt-5.5 从 p.jsonl 生成 30 条样本，使用终端工具", {"toolsets": ("terminal",)}),
        (
            "make 5 samples from p.jsonl with the model vllm/qwen and the math tools",
            {"model": "vllm/qwen", "toolsets": ("math",)},
        ),
        ("make 5 samples from p.jsonl with model openai/gpt-5.5", {"model": "openai/gpt-5.5"}),
        ("用 vllm/qwen 从 p.jsonl 生成 5 条样本", {"model": "vllm/qwen"}),
        ("生成 5 条样本，输入 p.jsonl，模型 vllm/qwen", {"model": "vllm/qwen", "input": "p.jsonl"}),
        (
            "make 5 samples from p.jsonl best of 4, scored by gsm8k, min score 0.5, at temperature 0.7",
            {"settings": (BEST, ("min_score", 0.5), ("temperature", 0.7), ("score", "gsm8k")), "count": 5},
        ),
        (
            "用 p.jsonl 生成 5 条样本，四选一，用 gsm8k 打分，最低分 0.5，温度 0.7",
            {"settings": (BEST, ("min_score", 0.5), ("temperature", 0.7), ("score", "gsm8k")), "count": 5},
        ),
        ("make 5 samples from p.jsonl with the terminal agent", {"settings": (("agent", "terminal"),)}),
        ("用终端智能体从 p.jsonl 生成 5 条样本", {"settings": (("agent", "terminal"),), "toolsets": None}),
    ],
)
def test_what_is_made_is_read_with_its_figures(request_: str, wanted: dict[str, object]) -> None:
    [make] = understand(request_)
    assert isinstance(make, MakeSamples), make
    make = replace(make, then=tuple(replace(each, subject="") for each in make.then))
    assert {name: getattr(make, name) for name in wanted} == wanted


def test_what_is_to_be_done_with_rows_is_read_with_its_particulars() -> None:
    wanted: dict[str, Intent] = {
        "export the batch for TRL without duplicates": ExportBatch(format="trl", dedupe=True),
        "export the batch as parquet and remove personal data": ExportBatch(format="parquet", pii=True),
        "把这批去重后导出为 TRL，去除个人信息": ExportBatch(format="trl", dedupe=True, pii=True),
        "export the compressed rows of batch b-1 as hf": ExportBatch(
            name="b-1", format="hf", which="compressed"
        ),
        "compress the batch with openai/gpt-5.5 to 8k tokens": CompressBatch(
            max_tokens=8000, summarizer="openai/gpt-5.5"
        ),
        "stop batch prompts": StopBatch(name="prompts"),
        "停止批次 prompts": StopBatch(name="prompts"),
        "stop the batch right now": StopBatch(now=True),
        "show sample 7 of the batch": ShowSamples(count=1, first=7),
        "看第 7 条样本": ShowSamples(count=1, first=7),
        "导出 best 为 sharegpt": ExportBatch(name="best", format="sharegpt"),
        "把 best 导出为 sharegpt": ExportBatch(name="best", format="sharegpt"),
        "export best as sharegpt": ExportBatch(name="best", format="sharegpt"),
        "看看 best 批次的两条样本": ShowSamples(name="best", count=2),
        "show 2 samples of best": ShowSamples(name="best", count=2),
        "show me 2 discarded samples of the batch": ShowSamples(count=2, which="discarded"),
    }
    for request, intent in wanted.items():
        [read] = understand(request)
        assert replace(read, subject="") == intent, request


@pytest.mark.parametrize(
    "request_",
    [
        "train gsm8k-mini with batch size 64",
        "set grpo.batch_size to 64",
        "set sft.steps to 500",
        "what is the batch size?",
        "批大小是多少",
        "how is it going?",
        "stop the run",
        "train gsm8k-mini for 40 steps on the training data",
        "show results",
        "export model as hf",
    ],
)
def test_what_is_about_training_stays_so(request_: str) -> None:
    assert not any("Batch" in type(i).__name__ or "Samples" in type(i).__name__ for i in understand(request_))
