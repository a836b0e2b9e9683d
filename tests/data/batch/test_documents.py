"""docs/data.md lists every setting of a batch; `python -m tests.data.batch.test_documents` updates it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from rl_cli.config.fields import section_of
from rl_cli.core.json_text import to_json
from rl_cli.data.batch.config import FREE, BatchConfig
from tests.readme_map import ROOT

DOCUMENT = ROOT / "docs" / "data.md"
START, END = "<!-- settings -->\n", "<!-- /settings -->"


def table() -> str:
    lines = ["| setting | default | what |", "|---|---|---|", *_lines(BatchConfig, "")]
    return "".join(line + "\n" for line in lines)


def _lines(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        section = section_of(field.annotation)
        if section:
            yield from _lines(section, f"{name}.")
            continue
        default: Any = field.get_default(call_default_factory=True)  # type: ignore[call-overload]
        shown = "" if default is PydanticUndefined else f"`{to_json(default)}`"
        what = (field.description or "").replace("|", "\\|").replace("\n", " ")
        yield f"| `{prefix}{name}`{' *' if name in FREE else ''} | {shown} | {what} |"


def updated(text: str) -> str:
    before, _, rest = text.partition(START)
    return before + START + table() + END + rest.partition(END)[2]


def test_the_page_lists_every_setting():
    text = DOCUMENT.read_text("utf-8")
    assert text == updated(text), "run python -m tests.data.batch.test_documents"


if __name__ == "__main__":
    Path(DOCUMENT).write_text(updated(DOCUMENT.read_text("utf-8")), "utf-8")
