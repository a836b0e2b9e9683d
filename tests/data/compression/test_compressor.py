"""Files of rows in, a file of rows out: every row is there, fits or is named, and nothing is torn apart."""

from __future__ import annotations

import asyncio
import json
import random
import re
import resource
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.files import read_jsonl
from rl_cli.data.compression.job import Compression
from rl_cli.data.compression.plan import Limits
from rl_cli.data.compression.rows_in import Place
from rl_cli.data.compression.tokenizers import Tokenizer, open_tokenizer
from rl_cli.data.compressor import compress, dry_run
from rl_cli.data.trajectory import from_conversations
from tests.data.compression.kit import chat_row, piece, read_rows, save_tokenizer, turns_row, write_rows


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return open_tokenizer(str(save_tokenizer(tmp_path_factory.mktemp("tokenizer"))))


def job(folder: Path, rows: list[Any], max_tokens: int = 2_000, **settings: Any) -> Compression:
    given = write_rows(folder / "in.jsonl", rows)
    return Compression((given,), folder / "out.jsonl", Limits(max_tokens, 200), **settings)


def some_rows(count: int) -> list[dict[str, Any]]:
    rng = random.Random(5)
    make = (turns_row, chat_row)
    return [
        make[n % 2](rng, [rng.randrange(200, 1_500) for _ in range(n % 12)], f"{n:x}-0-0")
        for n in range(count)
    ]


def tokens_of(row: dict[str, Any], tokenizer: Tokenizer) -> int:
    """Counted as `dry_run` does."""
    from rl_cli.data.compression.forms import conversation_of

    _, conversation = conversation_of(row)
    return sum(tokenizer.count([*conversation.texts, *conversation.beside]))


def test_all_rows_come_out_in_order_and_fit(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = some_rows(40)
    report = asyncio.run(compress(job(tmp_path, rows), tokenizer))
    made = read_rows(tmp_path / "out.jsonl")
    assert [row["key"] for row in made] == [row["key"] for row in rows]
    assert report["compressed"] > 10
    assert report["fits"] > 10
    assert report["over_limit"] == 0 == report["failed"] + report["cannot_fit"]
    assert (report["rows"], report["state"], report["cost_usd"]) == (40, "finished", 0)
    details = list(read_jsonl(tmp_path / "out.jsonl.compress" / "rows.jsonl"))
    for before, after, told in zip(rows, made, details, strict=True):
        counted = tokens_of(after, tokenizer)
        assert counted == told["tokens_after"] <= 2_000
        assert counted <= tokens_of(before, tokenizer) == told["tokens_before"]
        assert (after == before) == (told["status"] == "fits")
        assert ("summary" in after["marks"]) == bool(told["summaries"])
        for place in after.get("metadata", {}).get("summary_turns", []):
            turn = after.get("messages", after.get("conversations"))[place]
            assert "earlier turns" in turn.get("content", turn.get("value"))
        if "conversations" in after:
            from_conversations(after["conversations"])


def test_what_fits_is_copied_byte_for_byte(tmp_path: Path, tokenizer: Tokenizer) -> None:
    text = (
        '{"key": 1e2,  "conversations":[{"value":"\\u0068i","from":"human"}], "x": NaN}\r\n\n'
        '{"conversations":[{"from": "human", "value": "no line break at the end"}]}'
    )
    (tmp_path / "in.jsonl").write_bytes(text.encode())
    asyncio.run(compress(Compression((tmp_path / "in.jsonl",), tmp_path / "out.jsonl"), tokenizer))
    assert (tmp_path / "out.jsonl").read_bytes() == text.replace("\n\n", "\n").encode() + b"\n"


def test_trj_02_no_budget_parts_a_call_from_its_results(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rng = random.Random(6)
    sizes = [rng.randrange(100, 900) for _ in range(14)]
    sizes[7] = 60_000  # some 20,000 tokens
    given = job(tmp_path, [turns_row(rng, sizes), chat_row(rng, sizes)])
    for budget in (500, 1_000, 2_000, 5_000, 10_000, 15_000, 20_000):
        one = replace(given, limits=Limits(budget), output=tmp_path / f"{budget}.jsonl")
        report = asyncio.run(compress(one, tokenizer))
        turns, chat = read_rows(one.output)
        assert report["over_limit"] == sum(tokens_of(made, tokenizer) > budget for made in (turns, chat))
        check_messages(chat["messages"])
        from_conversations(turns["conversations"])
        check_turns(turns["conversations"])


def check_turns(turns: list[dict[str, Any]]) -> None:
    for before, turn in zip([None, *turns], turns, strict=False):
        if turn["from"] == "tool":
            assert before
            assert before["from"] == "gpt"
            assert before["value"].count("<tool_call>") == turn["value"].count("<tool_response>") == 1
    assert sum(t["value"].count("<tool_call>\n") for t in turns if t["from"] == "gpt") == sum(
        t["from"] == "tool" for t in turns
    )


def check_messages(messages: list[dict[str, Any]]) -> None:
    for before, message in zip([None, *messages], messages, strict=False):
        if message["role"] == "tool":
            assert before
            assert [call["id"] for call in before["tool_calls"]] == [message["tool_call_id"]]
    assert sum(len(m.get("tool_calls", [])) for m in messages) == sum(m["role"] == "tool" for m in messages)


def test_trj_03_kept_turns_are_kept_byte_for_byte(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rng = random.Random(7)
    row = turns_row(rng, [9_000, 9_000, 9_000])
    system, human, *rest = row["conversations"]
    chat = [{"from": role, "value": piece(rng, 200)} for role in ("gpt", "human") * 5]
    row["conversations"] = [system, human, *chat, *rest, *chat[1:5]]
    first = 12
    assert row["conversations"][first + 1]["from"] == "tool"
    report = asyncio.run(compress(job(tmp_path, [row], max_tokens=6_500), tokenizer))
    (made,) = read_rows(tmp_path / "out.jsonl")
    assert report["compressed"] == 1
    assert made["conversations"][: first + 2] == row["conversations"][: first + 2]
    assert made["conversations"][-4:] == row["conversations"][-4:]
    assert tokens_of(made, tokenizer) <= 6_500


def test_trj_04_what_stays_over_the_limit_is_counted(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rng = random.Random(8)
    giant_result, giant_question = turns_row(rng, [40_000, 300]), turns_row(rng, [300, 300])
    giant_question["conversations"][1]["value"] = piece(rng, 40_000)
    rows = [giant_result, giant_question, turns_row(rng, [300])]
    one = replace(job(tmp_path, rows), limits=Limits(2_000, 200, 5))
    report = asyncio.run(compress(one, tokenizer))
    made = read_rows(one.output)
    assert report["over_limit"] == sum(tokens_of(row, tokenizer) > 2_000 for row in made) == 1
    assert made[0]["marks"] == ["shortened_result"]
    assert made[1] == giant_question
    (reason,) = report["reasons"]
    assert re.fullmatch(r"cannot_fit: what has to stay takes at least [\d,]+ tokens, and 2,000 .*", reason)


def test_rows_over_the_limit_are_split_off_if_asked_for(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rng = random.Random(9)
    rows = [turns_row(rng, [300], f"{n}") for n in range(6)]
    for row in rows[::2]:
        row["conversations"][1]["value"] = piece(rng, 20_000)
    report = asyncio.run(compress(job(tmp_path, rows, over_limit="split"), tokenizer))
    assert read_rows(tmp_path / "out.jsonl") == rows[1::2]
    assert read_rows(Path(report["split_off"])) == rows[::2]
    assert report["over_limit"] == 3


def test_lines_that_are_no_rows_are_told_with_their_numbers(tmp_path: Path, tokenizer: Tokenizer) -> None:
    good = json.dumps(turns_row(random.Random(1), [300]))
    odd = '{"text": "no conversation"}'
    (tmp_path / "in.jsonl").write_bytes(
        f'{good}\n[1]\n\n{odd}\n{{"a"\n'.encode() + b"\xff\xfe\n" + good.encode()
    )
    one = Compression((tmp_path / "in.jsonl",), tmp_path / "out.jsonl")
    report = asyncio.run(compress(one, tokenizer))
    assert (tmp_path / "out.jsonl").read_text() == f"{good}\n{odd}\n{good}\n"
    details = list(read_jsonl(tmp_path / "out.jsonl.compress" / "rows.jsonl"))
    told = [(row["line"], row["status"]) for row in details]
    assert told == [(1, "fits"), (2, "no_row"), (4, "unreadable"), (5, "no_row"), (6, "no_row"), (7, "fits")]
    assert (report["no_row"], report["unreadable"], report["rows"]) == (3, 1, 6)


def test_lone_surrogates_are_counted(tmp_path: Path, tokenizer: Tokenizer) -> None:
    row = turns_row(random.Random(1), [300, 9_000, 300])
    row["conversations"][1]["value"] = "half \udc97 a pair"
    (tmp_path / "in.jsonl").write_text(json.dumps(row))
    one = Compression((tmp_path / "in.jsonl",), tmp_path / "out.jsonl", Limits(2_000, 200))
    assert asyncio.run(compress(one, tokenizer))["compressed"] == 1
    (made,) = read_rows(one.output)
    assert made["conversations"][1]["value"] == "half \ufffd a pair"


def test_a_sample_is_the_same_for_a_seed(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = some_rows(40)

    def drawn(seed: int) -> list[str]:
        one = job(tmp_path, rows, sample_percent=30, seed=seed)
        return [row["key"] for n, row in enumerate(rows, 1) if one.draws(Place(0, n))]

    assert drawn(1) == drawn(1) != drawn(2)
    assert 4 < len(drawn(1)) < 25
    report = asyncio.run(compress(job(tmp_path, rows, sample_percent=30, seed=1), tokenizer))
    made = [row["key"] for row in read_rows(tmp_path / "out.jsonl")]
    assert made == drawn(1)
    assert report["not_sampled"] == 40 - len(made)


def test_a_dry_run_writes_nothing_and_says_the_same(tmp_path: Path, tokenizer: Tokenizer) -> None:
    one = job(tmp_path, some_rows(20))
    said = asyncio.run(dry_run(one, tokenizer))
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]
    done = asyncio.run(compress(one, tokenizer))
    same = ("rows", "fits", "compressed", "over_limit", "summaries", "turns_after", "tokens_before")
    assert {name: said[name] for name in same} == {name: done[name] for name in same}
    assert said["tokens_after"] >= done["tokens_after"]


def test_several_files_are_taken_once_each(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = some_rows(8)
    first, second = write_rows(tmp_path / "a.jsonl", rows[:5]), write_rows(tmp_path / "b.jsonl", rows[5:])
    asyncio.run(compress(Compression((first, second), tmp_path / "out.jsonl"), tokenizer))
    assert read_rows(tmp_path / "out.jsonl") == rows
    (tmp_path / "link.jsonl").symlink_to(first)
    with pytest.raises(BadUsage, match="taken twice"):
        asyncio.run(compress(Compression((first, tmp_path / "link.jsonl"), tmp_path / "x.jsonl"), tokenizer))
    with pytest.raises(BadUsage, match="is an input"):
        asyncio.run(compress(Compression((first,), first), tokenizer))
    assert read_rows(first) == rows[:5]


def test_an_output_of_somebody_else_is_not_replaced(tmp_path: Path, tokenizer: Tokenizer) -> None:
    one = job(tmp_path, some_rows(4))
    one.output.write_text("mine\n")
    with pytest.raises(BadUsage, match="exists already"):
        asyncio.run(compress(one, tokenizer))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]
    one.output.unlink()
    asyncio.run(compress(one, tokenizer))
    asyncio.run(compress(replace(one, limits=Limits(1_500, 200)), tokenizer))
    one.output.write_text("mine\n")
    with pytest.raises(BadUsage, match="exists already"):
        asyncio.run(compress(one, tokenizer))


def test_rows_over_the_limit_replace_no_file_of_somebody_else(tmp_path: Path, tokenizer: Tokenizer) -> None:
    one = job(tmp_path, some_rows(2), over_limit="split")
    assert one.split_off
    one.split_off.write_text("mine\n")
    with pytest.raises(BadUsage, match=r"out\.over_limit\.jsonl exists already"):
        asyncio.run(compress(one, tokenizer))
    one.inputs[0].rename(one.split_off)
    with pytest.raises(BadUsage, match="is an input"):
        asyncio.run(compress(replace(one, inputs=(one.split_off,)), tokenizer))
    one.split_off.rename(one.inputs[0])
    for limit in (1_500, 1_000):  # its own it replaces
        asyncio.run(compress(replace(one, limits=Limits(limit, 200)), tokenizer))
    assert one.split_off.exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"limits": Limits(100)},
        {"limits": Limits(summary_tokens=20)},
        {"limits": Limits(keep_last=-1)},
        {"sample_percent": 0},
        {"concurrency": 0},
        {"summary_seconds": float("nan")},
    ],
)
def test_settings_that_make_no_sense_are_refused(
    tmp_path: Path, tokenizer: Tokenizer, settings: dict[str, Any]
) -> None:
    with pytest.raises(BadUsage):
        asyncio.run(compress(replace(job(tmp_path, some_rows(2)), **settings), tokenizer))


def test_an_input_without_rows_is_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    with pytest.raises(BadUsage, match="no rows"):
        asyncio.run(compress(job(tmp_path, []), tokenizer))
    (tmp_path / "in.parquet").write_bytes(b"PAR1\x15\x04")
    one = Compression((tmp_path / "in.parquet",), tmp_path / "out.jsonl")
    with pytest.raises(BadUsage, match="Parquet"):
        asyncio.run(compress(one, tokenizer))


def test_a_full_disk_is_told_and_the_work_goes_on_later(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = some_rows(60)
    one = job(tmp_path, rows)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            asyncio.run(compress(one, tokenizer))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not one.output.exists()
    report = asyncio.run(compress(one, tokenizer))
    assert [row["key"] for row in read_rows(one.output)] == [row["key"] for row in rows]
    assert report["rows"] == 60


class Failing:
    """A tokenizer that panics at one word, as those in Rust do."""

    is_estimate = False

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.name, self._tokenizer = tokenizer.name, tokenizer

    def count(self, texts: Sequence[str]) -> list[int]:
        if any("xyzzy" in text for text in texts):
            raise BaseException("StackOverflow")  # pyo3's PanicException is no Exception either
        return self._tokenizer.count(texts)


def test_a_row_that_the_tokenizer_fails_at_stays_and_the_others_go_on(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    rows = some_rows(12)
    rows[4]["conversations"][1]["value"] = "xyzzy"
    report = asyncio.run(compress(job(tmp_path, rows), Failing(tokenizer)))
    made = read_rows(tmp_path / "out.jsonl")
    assert made[4] == rows[4]
    assert (report["unreadable"], report["compressed"] + report["fits"]) == (1, 11)
    assert any("StackOverflow" in reason for reason in report["reasons"])


class Interrupting:
    """A tokenizer that is interrupted when it counts the first rows."""

    is_estimate = False

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.name, self._tokenizer = tokenizer.name, tokenizer
        self.stop = asyncio.Event()

    def count(self, texts: Sequence[str]) -> list[int]:
        if len(texts) > 1:  # the heading of a summary is counted before
            self.stop.set()
        return self._tokenizer.count(texts)


def test_a_stop_keeps_what_is_done_and_the_next_call_goes_on(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = some_rows(100)
    one, interrupting = job(tmp_path, rows), Interrupting(tokenizer)
    with pytest.raises(WorkFailed, match="which are kept"):
        asyncio.run(compress(one, interrupting, stop=interrupting.stop))
    assert not one.output.exists()
    report = asyncio.run(compress(one, tokenizer))
    assert 0 < report["resumed"] < 100
    assert [row["key"] for row in read_rows(one.output)] == [row["key"] for row in rows]
    assert report["rows"] == 100
