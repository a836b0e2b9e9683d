"""Prompts are Markdown files in this package; `{{name}}` in them is a placeholder."""

from __future__ import annotations

import re
from importlib.resources import files

PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def render(name: str, **placeholders: str) -> str:
    """The prompt in `<name>.md`, its placeholders filled in.

    What is filled in is not looked at again, so a value may contain braces.

    Raises:
        ValueError: A placeholder of the file has no value, or a value has no placeholder.
        FileNotFoundError: There is no such prompt.
    """
    text = files("prompts").joinpath(f"{name}.md").read_text(encoding="utf-8")
    wanted = set(PLACEHOLDER.findall(text))
    if missing := sorted(wanted - placeholders.keys()):
        raise ValueError(f"prompt '{name}' needs {', '.join(missing)}")
    if unused := sorted(placeholders.keys() - wanted):
        raise ValueError(f"prompt '{name}' has no placeholder {', '.join(unused)}")
    return PLACEHOLDER.sub(lambda match: placeholders[match[1]], text).strip()
