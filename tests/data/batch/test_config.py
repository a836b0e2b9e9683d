"""A batch's settings: files, flags, mistakes, and what may not change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.errors import BadUsage
from rl_cli.data.batch.config import FREE, BatchConfig, differences
from rl_cli.data.batch.config_file import load_config
from rl_cli.data.batch.folder import batch_folder, list_batches
from tests.data.batch.kit import append, begun, done, write_input
from tests.readme_map import ROOT

WHOLE = """
input: in.jsonl
name: research-1
model: openai/gpt-5
distribution: research
sandbox: {kind: docker, image: "python:3.12", network: true}
target: 2
min_score: 0.5
score: gsm8k
temperature: 0.7
prefill:
  - {role: user, content: hello}
  - {role: assistant, content: hi}
"""


def config(**flags: Any) -> BatchConfig:
    return load_config(None, {"name": "b", "input": "some/data", **flags})


def test_flags_go_before_the_file_and_the_file_is_where_its_input_is(tmp_path: Path):
    (tmp_path / "batch.yaml").write_text(WHOLE)
    write_input(tmp_path / "in.jsonl", ["a"])
    flags = {"toolsets": ["terminal"], "sandbox.kind": "local", "temperature": 1.0, "top_p": None}
    found = load_config(tmp_path / "batch.yaml", flags)
    assert found.input == str(tmp_path / "in.jsonl")
    assert (found.toolsets, found.distribution) == (["terminal"], None)
    assert (found.sandbox.kind, found.sandbox.image, found.temperature) == ("local", "python:3.12", 1.0)
    assert (found.most_samples, found.top_p) == (8, None)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"toolset": ["x"]}, r"there is no field toolset \(did you mean toolsets"),
        ({"sandbox.kin": "local"}, r"there is no field sandbox.kin \(did you mean kind"),
        ({"sandbox.kind": "dokcer"}, r"sandbox.kind must be a kind of sandbox \(did you mean docker"),
        ({"concurrency": "many"}, "concurrency should be a valid integer, not 'many'"),
        ({"concurrency": 0}, "concurrency should be greater than or equal to 1, not 0"),
        ({"temperature": float("nan")}, "temperature should be a finite number"),
        ({"toolsets": ["a"], "distribution": "d"}, "toolsets and distribution are both set"),
        ({"best_of": 2}, "best_of needs score"),
        ({"best_of": 2, "samples": 3, "score": "j"}, "best_of and samples are both set"),
        ({"target": 2, "score": "j"}, "target needs min_score"),
        ({"target": 9, "score": "j", "min_score": 1, "max_samples_per_prompt": 3}, "is below target"),
        ({"eval_every": 5, "score": "j"}, "eval_every and eval_held_out need each other"),
        ({"ray_address": "auto"}, "ray_address needs executor: ray"),
        ({"prefill": [{"role": "tool"}]}, "prefill must be messages"),
        ({"name": "../up"}, "name must be letters, digits"),
    ],
)
def test_mistakes_are_named(flags: dict[str, Any], told: str):
    with pytest.raises(BadUsage, match=told):
        config(**flags)


def test_every_mistake_of_a_file_is_named_at_once(tmp_path: Path):
    (tmp_path / "b.yaml").write_text("nam: x\nsamples: -1\n")
    with pytest.raises(BadUsage) as error:
        load_config(tmp_path / "b.yaml", {})
    for part in ("b.yaml: ", "input is missing", "name is missing", "no field nam", "samples should be"):
        assert part in str(error.value)
    assert "\n" not in str(error.value)


def test_bat_14_other_settings_are_refused_with_what_differs(tmp_path: Path, home: Path):
    file = write_input(tmp_path / "in.jsonl", ["a"])
    begun(file, temperature=0.1)
    folder, first = begun(file, temperature=0.5)  # nothing was asked before: it begins anew
    append(folder, [done(f"{'0' * 32}-0-0")])
    stored = (folder.path / "batch.yaml").read_bytes()
    assert folder.config() == first
    with pytest.raises(BadUsage) as error:
        begun(file, model="openai/other", temperature=1.0, concurrency=3)
    assert str(error.value) == (
        "batch batch was begun otherwise: model was 'openai/test' and is 'openai/other'; temperature was 0.5 "
        "and is 1.0 (give the earlier settings, or another name)"
    )
    begun(file, temperature=0.5, concurrency=3, max_samples=1)
    assert begun(file, name="tried", max_samples=1)[0].config().max_samples is None
    begun(file, model="openai/other", name="second")
    assert (folder.path / "batch.yaml").read_bytes() == stored
    assert [batch.name for batch in list_batches()] == ["batch", "second", "tried"]


def test_what_may_change_is_said_of_fields_that_exist():
    assert BatchConfig.model_fields.keys() > FREE
    other = config(**{"sandbox.network": True})
    assert differences(config(), other) == ["sandbox.network was False and is True"]
    assert differences(config(), config(concurrency=99, item_seconds=5.0, executor="ray")) == []


def test_settings_survive_their_file(tmp_path: Path, home: Path):
    text = 'say "no"\nor\u2028off: {x}'
    folder, made = begun(
        write_input(tmp_path / "in.jsonl", ["a"]),
        system_prompt=text,
        prefill=[{"role": "user", "content": text}],
        toolsets=[],
        **{"sandbox.options": {"host": "me@there"}},
    )
    assert folder.config() == made
    assert made.system_prompt == text


HOLDER = """
import sys
from rl_cli.core.processes import ProcessIdentity
from rl_cli.data.batch.folder import find_batch
folder = find_batch("batch")
with folder.locked():
    folder.write_state({"state": "running", "process": ProcessIdentity.current().to_dict()})
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_writes_a_batch_and_a_killed_one_leaves_it_free(tmp_path: Path, home: Path):
    folder, _ = begun(write_input(tmp_path / "in.jsonl", ["a"]))
    argv = [sys.executable, "-c", HOLDER]
    with subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        holder.stdout.readline()
        told = f"batch batch is being made by process {holder.pid}"
        with pytest.raises(BadUsage, match=told), folder.locked():
            pass
        assert folder.state()["state"] == "running"
        holder.kill()
    assert (folder.state()["state"], folder.state()["in_flight"]) == ("stopped", 0)
    with folder.locked():
        pass


def test_sec_05_a_name_is_one_part_of_a_path():
    for name in ("../../etc/cron.d/x", "a/../../b", "/abs", "", ".", "..", "CON", "x" * 300, "a\0b", "a\n"):
        with pytest.raises(BadUsage, match="no name of a batch"):
            batch_folder(name)
