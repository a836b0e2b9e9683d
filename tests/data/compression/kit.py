"""Tokenizers and rows to compress, made of the standard library's own text."""

from __future__ import annotations

import json
import random
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

from rl_cli.core.messages import Message, assistant, system, tool_call, tool_result, user
from rl_cli.data.trajectory import to_conversations

TOOL = {
    "type": "function",
    "function": {
        "name": "terminal",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}
SOURCES = (
    "argparse",
    "ast",
    "datetime",
    "decimal",
    "doctest",
    "inspect",
    "pdb",
    "smtplib",
    "subprocess",
    "typing",
)


@cache
def prose() -> str:
    """A megabyte of text."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    texts = [path.read_text("utf-8") for name in SOURCES if (path := folder / f"{name}.py").exists()]
    return "\n".join(texts)


def save_tokenizer(folder: Path, vocabulary: int = 4_000) -> Path:
    """A byte-level BPE, trained on the text; its folder."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(prose()[:300_000].splitlines(), trainer)
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    return folder


def piece(rng: random.Random, chars: int) -> str:
    """So many characters of the text, from anywhere."""
    start = rng.randrange(len(prose()) - chars)
    return prose()[start : start + chars]


def messages(rng: random.Random, results: list[int], thinking: int = 200) -> list[Message]:
    """System, user, then a call and its result of so many characters for each, then an answer."""
    made = [system(piece(rng, 300)), user(piece(rng, 150))]
    for number, size in enumerate(results):
        call = tool_call(f"call_{number}", "terminal", json.dumps({"command": f"cat file{number}"}))
        turn = assistant(None, [call])
        turn["reasoning"] = piece(rng, rng.randrange(thinking // 2, thinking * 2))
        content = json.dumps({"output": piece(rng, size), "exit_code": 0})
        made += [turn, tool_result(call, content)]
    return [*made, assistant("Done.")]


def chat_row(rng: random.Random, results: list[int], key: str = "k-0-0") -> dict[str, Any]:
    """As a batch writes it, with the fields that matter here."""
    return {
        "key": key,
        "messages": messages(rng, results),
        "tools": [TOOL],
        "marks": ["no_reasoning"],
        "metadata": {},
    }


def turns_row(rng: random.Random, results: list[int], key: str = "k-0-0") -> dict[str, Any]:
    """The same kind of row in the from/value form."""
    made = to_conversations(messages(rng, results), [TOOL])
    return {"key": key, "conversations": made.conversations, "marks": made.marks, "completed": made.completed}


def long_row(rng: random.Random, chars: int, key: str) -> dict[str, Any]:
    """In the from/value form, of about so many characters."""
    sizes = []
    while sum(sizes) < chars * 0.8:
        sizes.append(rng.randrange(chars // 300, chars // 30))
    return turns_row(rng, sizes, key)


def write_rows(path: Path, rows: Any) -> Path:
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return path


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
