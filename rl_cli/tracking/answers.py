"""The process that uses the wandb SDK to read: `python -P -m rl_cli.tracking.answers` (see `ask`).

One JSON object a line: {"operation", "arguments"} comes in; out go any number of {"rows": [...]} and then
{"result": {...}} or {"error": {"kind", "message", "hint"}}. It ends with its input, in the middle of a call
too.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import sys
import threading
from typing import Any, TextIO

from rl_cli.tracking.faults import fault_of

ROWS_A_LINE = 200
FOLDER = "rl-cli-wandb-"
"""What the name of the child's folder begins with."""


class Answers:
    """Sends what an operation has found.

    Args:
        output: Where the lines go.
    """

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._rows: list[str] = []

    def row(self, row: dict[str, Any] | str) -> None:
        """Takes a row, as JSON text if that is what there is."""
        text = row if isinstance(row, str) else json.dumps(row, default=str)
        self._rows.append(text.replace("\n", " "))
        if len(self._rows) >= ROWS_A_LINE:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            self._write('{"rows": [' + ",".join(self._rows) + "]}")
            self._rows = []

    def send(self, value: dict[str, Any]) -> None:
        self._write(json.dumps(value, default=str))

    def _write(self, line: str) -> None:
        self._output.write(line + "\n")
        self._output.flush()


def main() -> int:
    # wandb-core inherits standard output: only this process writes answers.
    answers = Answers(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    os.dup2(2, 1)
    requests: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    sys.modules["numpy"] = None  # type: ignore[assignment] # 10 MB that wandb can do without
    try:
        from rl_cli.tracking.sdk import Sdk

        sdk = Sdk()
    except Exception as error:
        answers.send({"error": fault_of(error, "", None)})
        return 1
    while True:
        request = json.loads(requests.get())
        try:
            result = sdk.answer(request["operation"], request["arguments"], answers.row)
            answers.flush()
            answers.send({"result": result})
        except Exception as error:  # whatever the SDK raises: it is told apart and told
            answers.send({"error": fault_of(error, sdk.base_url, sdk.api_key)})


def _read(requests: queue.Queue[str]) -> None:
    """Hands requests on; whoever asked is gone when they end, and nobody wants the answer."""
    for line in sys.stdin:
        requests.put(line)
    folder = os.environ.get("WANDB_DIR", "")
    if os.path.basename(folder).startswith(FOLDER):  # whoever was to remove it was killed
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
