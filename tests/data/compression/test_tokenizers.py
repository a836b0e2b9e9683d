"""Tokenizers by file, folder, name and estimate; what cannot be had is told in one line."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from rl_cli.core.errors import BadUsage, RlCliError, WorkFailed
from rl_cli.data.compression.counting import BATCH_CHARS, Counting
from rl_cli.data.compression.tokenizers import open_tokenizer
from tests.components import leave_out
from tests.data.compression.kit import save_tokenizer

TEXTS = ["def count(texts):", "", "naïve 漢字 🙂", "a" * 1_000]

PLUGIN = r"""
def tiny():
    return {
        "name": "tiny",
        "pat_str": r"\S+|\s+",
        "mergeable_ranks": {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"abab": 257},
        "special_tokens": {"<|end|>": 258},
    }

ENCODING_CONSTRUCTORS = {"tiny": tiny}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def test_a_folder_and_its_file_count_what_the_library_counts(folder: Path) -> None:
    from tokenizers import Tokenizer

    bare = Tokenizer.from_file(str(folder / "tokenizer.json"))
    expected = [len(bare.encode(text).ids) for text in TEXTS]
    for name in (str(folder), str(folder / "tokenizer.json")):
        tokenizer = open_tokenizer(name)
        assert tokenizer.count(TEXTS) == expected
        assert not tokenizer.is_estimate


def test_truncation_that_a_tokenizer_was_saved_with_does_not_hide_tokens(
    folder: Path, tmp_path: Path
) -> None:
    from tokenizers import Tokenizer

    cutting = Tokenizer.from_file(str(folder / "tokenizer.json"))
    cutting.enable_truncation(8)
    cutting.enable_padding(length=64)
    cutting.save(str(tmp_path / "tokenizer.json"))
    text = "one two three " * 100
    assert open_tokenizer(str(tmp_path)).count([text, "x"]) == open_tokenizer(str(folder)).count([text, "x"])


def test_a_name_is_found_in_the_hub_cache_and_else_cannot_be_fetched(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    commit = "0123456789" * 4
    snapshot = tmp_path / "models--somebody--model" / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text(commit)
    shutil.copy(folder / "tokenizer.json", snapshot)
    assert open_tokenizer("somebody/model").count(TEXTS) == open_tokenizer(str(folder)).count(TEXTS)
    with pytest.raises(WorkFailed, match="somebody/other is not on this computer and cannot be fetched"):
        open_tokenizer("somebody/other")


@pytest.mark.parametrize(
    "name", ["./nowhere", "/no/such/folder", "nowhere.json", "a/b/c", "two  words", "-x-"]
)
def test_what_is_no_tokenizer_is_named(name: str) -> None:
    with pytest.raises(RlCliError, match=name.strip("./-")):
        open_tokenizer(name)


def test_files_that_are_no_tokenizer_are_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    for name in (tmp_path, tmp_path / "tokenizer.json"):
        with pytest.raises(BadUsage, match=r"tokenizer\.json"):
            open_tokenizer(str(name))
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadUsage, match="empty"):
        open_tokenizer(str(tmp_path / "empty"))


def test_a_giant_text_is_counted_in_pieces(folder: Path) -> None:
    tokenizer, sizes = open_tokenizer(str(folder)), []

    class Watched:
        name, is_estimate = "watched", False

        def count(self, texts: Sequence[str]) -> list[int]:
            sizes.append(max(map(len, texts)))
            return tokenizer.count(texts)

    async def count(*texts: str) -> list[int]:
        async with Counting(Watched()) as counting:
            return await counting.count(texts)

    giant = "some words of text\n" * 80_000
    counts = asyncio.run(count("a b", giant, "x" * 1_200_000, "a b"))
    assert counts[0] == counts[3] == tokenizer.count(["a b"])[0]
    assert 0 <= counts[1] - tokenizer.count([giant])[0] < 5
    assert max(sizes) <= BATCH_CHARS


def test_an_estimate_says_that_it_is_one() -> None:
    tokenizer = open_tokenizer("estimate")
    assert tokenizer.is_estimate
    assert tokenizer.count(TEXTS)[1] == 0


def test_tiktoken_counts_control_tokens_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("tiktoken") is None:
        leave_out("tiktoken (pip install 'rl-flywheel[tokens]')")
    (tmp_path / "tiktoken_ext").mkdir()
    (tmp_path / "tiktoken_ext" / "tiny_encoding.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    import tiktoken.registry
    import tiktoken_ext

    monkeypatch.setattr(tiktoken.registry, "ENCODING_CONSTRUCTORS", None)
    monkeypatch.setattr(tiktoken_ext, "__path__", [*tiktoken_ext.__path__, str(tmp_path / "tiktoken_ext")])
    tiktoken.registry._available_plugin_modules.cache_clear()
    tokenizer = open_tokenizer("tiktoken:tiny")
    assert tokenizer.count(["ab", "abab", "<|end|>", ""]) == [1, 1, 7, 0]
    with pytest.raises(BadUsage, match="tiny"):
        open_tokenizer("tiktoken:nothing")


def test_tiktoken_that_cannot_be_fetched_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("tiktoken") is None:
        leave_out("tiktoken (pip install 'rl-flywheel[tokens]')")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    with pytest.raises(WorkFailed, match="cannot be fetched"):
        open_tokenizer("tiktoken:o200k_base")
