"""The README's map of the tree, from the first line of each file; `python -m tests.readme_map` updates it."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("rl_cli", "tools", "environments", "prompts")
AROUND = {
    "Makefile": "demo, test, lint, soak, bench, fuzz.",
    "pyproject.toml": "The distribution, its dependencies, the settings of every checker.",
    "constraints.txt": "One set of versions that resolves together.",
    ".ci/run": "What must hold before a change lands.",
    "CONTRIBUTING.md": "How to add a tool, an environment, a backend.",
    "docs/architecture.md": "How the parts fit together.",
    "docs/formats.md": "Every file on disk, with examples.",
    "docs/compressor.md": "Conversations made to fit what a trainer takes.",
    "docs/data.md": "Batches of data: input, settings, the folder, merging.",
    "docs/export.md": "Rows as files for trainers; masking, duplicates, showing.",
    "docs/faults.md": "What happens on each fault, and cleaning up.",
    "docs/generation.md": "How a batch asks a model, what is kept, stopping, scores.",
    "docs/graders.md": "How answers are graded, and what readers may disagree about.",
    "docs/health.md": "What a sick run looks like, and how well that is told.",
    "docs/monitor.md": "Checks and judgements, with or without a chat.",
    "docs/parsers.md": "Model families, what counts as a call, and what readers may disagree about.",
    "docs/reports.md": "Reports, comparisons, plots.",
    "docs/resume.md": "Going on with a run that is over.",
    "docs/sandboxes.md": "Where commands run: the kinds, what each promises, limits, the assistant's own.",
    "docs/tools.md": "The everyday tools, distributions, what a reward function is given.",
    "docs/trajectories.md": "Conversations as from/value rows, and back.",
    "docs/wandb.md": "What W&B gets, when, and what happens when it does not answer.",
    "examples/datagen/": "Batches that run: inputs, settings, a script in place of a model.",
    "tests/": "Mirrors the tree; tests/e2e runs the commands, tests/soak at full size, tests/bench measures.",
}
NAME_WIDTH = max(map(len, AROUND))
START, END = "<!-- map -->\n", "<!-- /map -->"


def describe(path: Path) -> str:
    """The file's one line: its docstring's first sentence, a profile's description, a comment, a heading."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        line = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]
    elif path.suffix == ".yaml":
        line = text.splitlines()[0].removeprefix("#").removeprefix("description:")
    else:
        line = next((line for line in text.splitlines() if line.strip()), "").lstrip("# ")
    line = " ".join(line.split())
    return line if len(line) <= 140 else line[:137].rsplit(" ", 1)[0] + " ..."


def render() -> str:
    """A code block with one line per file, folder by folder."""
    lines = ["```", *(f"{name:<{NAME_WIDTH}}  {line}" for name, line in AROUND.items())]
    for package in PACKAGES:
        files = [p for p in (ROOT / package).rglob("*") if p.suffix in (".py", ".md", ".yaml")]
        folders = sorted({path.parent for path in files})
        for folder in folders:
            here = sorted(p for p in files if p.parent == folder and p.name != "__init__.py")
            if not here:
                continue
            lines.append(f"{folder.relative_to(ROOT).as_posix()}/")
            width = max(len(path.name) for path in here)
            lines += [f"  {path.name:<{width}}  {describe(path)}" for path in here]
    return "\n".join([*lines, "```"]) + "\n"


def update(readme: Path = ROOT / "README.md") -> None:
    text = readme.read_text("utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    readme.write_text(before + START + render() + END + after, "utf-8")


if __name__ == "__main__":
    update()
