from __future__ import annotations

import json
from pathlib import Path

import pytest

from rl_cli.config.edit import changed_fields, edit, from_yaml, resolve, to_yaml
from rl_cli.config.fields import FIELDS, flatten, read_assignments
from rl_cli.config.profiles import load_profile, profile_names
from rl_cli.config.tree import LoraSection, RunConfig
from rl_cli.config.yaml_text import dump_yaml, parse_assignment
from rl_cli.core.errors import BadUsage


@pytest.fixture(scope="module")
def demo() -> RunConfig:
    return resolve("gsm8k-mini", "cpu-demo")


def refusal(config: RunConfig, changes: dict) -> str:
    """What edit() says; the config must be as it was."""
    before = flatten(config)
    with pytest.raises(BadUsage) as caught:
        edit(config, changes)
    assert flatten(config) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_ops_24_incompatible_sizes_are_refused_with_both_fields_named(demo: RunConfig, home: Path):
    said = refusal(demo, {"grpo.batch_size": 10, "grpo.group_size": 4})
    assert "grpo.batch_size (10)" in said
    assert "grpo.group_size (4)" in said
    assert "multiple" in said
    assert not (home / "runs").exists()


def test_every_problem_is_named_at_once_and_nothing_is_changed(demo: RunConfig):
    said = refusal(
        demo,
        {
            "grpo.step": 3,
            "learning_rate": 1e-3,
            "grpo.steps": "40",
            "grpo.temperature": float("nan"),
            "model.dtype": "bfloat16",
            "grpo.batch_size": 9,
            "seed": 7,
        },
    )
    assert "no field grpo.step (did you mean grpo.steps" in said
    assert "sft.learning_rate or grpo.learning_rate" in said
    assert "grpo.steps should be a valid integer, not '40'" in said
    assert "grpo.temperature should be a finite number" in said
    assert "model.dtype is locked: cpu-demo trains the tiny model" in said
    assert "grpo.batch_size (9) must be a multiple of grpo.group_size (8)" in said
    assert "nothing was changed" in said


def test_changes_that_are_right_only_together_are_applied_together(demo: RunConfig):
    edited = edit(demo, {"grpo.batch_size": 30, "grpo.group_size": 6, "grpo.learning_rate": 1})
    assert edited.tasks_per_step == 5
    assert edited.grpo.learning_rate == 1.0
    assert edit(demo, {"grpo": {"batch_size": 30, "group_size": 6}}).tasks_per_step == 5
    assert demo.grpo.batch_size == 256
    assert changed_fields(edited) == {"grpo.batch_size": 30, "grpo.group_size": 6, "grpo.learning_rate": 1.0}


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"grpo": None}, "section"),
        ({"grpo": 3}, "grpo.steps"),
        ({"model.lora": {"rank": 3}}, "locked"),
        ({"profile": "single-gpu"}, "select the environment again"),
        ({"environment.name": "gsm8k"}, "select that one instead"),
        ({"environment.options.pth": "x"}, "pth: no such option"),
        ({"environment.options": 3}, "dictionary"),
        ({"grpo.steps": {"a": 1}}, "grpo.steps should be a valid integer, not {'a': 1}"),
        ({"grpo.steps": [4]}, "grpo.steps should be a valid integer, not [4]"),
        ({"grpo": {"stpes": 4}}, "did you mean grpo.steps"),
        ({"tracking.wandb": False}, "'auto', 'live', 'online', 'offline' or 'off'"),
        ({"sft.max_steps": 10}, "sft.steps"),
        ({"backend.name": "replay"}, "backend.file"),
        ({"budget.max_hours": True}, "number"),
        ({"seed": -1}, "seed"),
        ({"grpo.steps": 99999999999999999999999}, "grpo.steps should be less than or equal to"),
        ({"grpo.learning_rate": 10**400}, "grpo.learning_rate should be"),
        ({"budget.deadline": "yesterday"}, "budget.deadline must be an ISO 8601 time with a zone"),
        ({"budget.deadline": "2026-12-01"}, "for example 2026-12-01T18:00:00+01:00, not '2026-12-01'"),
        ({"budget.deadline": 3}, "with a zone"),
        ({"": 1}, "no field"),
    ],
)
def test_refusals_name_the_field_and_the_rule(demo: RunConfig, changes, word):
    assert word in refusal(demo, changes)


def test_a_mapping_sets_the_fields_of_its_section_and_no_others(tmp_path: Path):
    def lora(*texts: str):
        changes = dict(parse_assignment(text) for text in texts)
        return resolve("gsm8k", "single-gpu", changes | {"environment.options": {"path": str(tmp_path)}})

    write_sums(tmp_path, 100)
    assert lora("model.lora={rank: 32}").model.lora == LoraSection(rank=32)
    assert lora("model.lora={}").model.lora == LoraSection()
    assert lora("model.lora={}", "model.lora.rank=8").model.lora == LoraSection(rank=8)
    assert lora("grpo={}").grpo == lora("grpo={steps: 200}").grpo
    assert lora().environment.options["path"] == str(tmp_path)
    assert edit(lora("model.lora={rank: 8}"), {"model.lora": {}}).model.lora == LoraSection(rank=8)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["grpo.steps=4", "seed=1", "grpo.steps=5"], "grpo.steps is given twice, as 4 and as 5"),
        (["grpo.steps=4", "grpo={steps: 5}"], "grpo.steps is given twice"),
        (["backend={name: trl}", "backend.name=replay"], "as 'trl' and as 'replay'"),
        (["environment.options.path=a", "environment.options={path: b}"], "given twice"),
        (["model.lora={rank: 4}", "model.lora="], "model.lora is given .*null"),
        (["model.lora=", "model.lora.rank=4"], "model.lora is given .*null"),
        (["model.lora=", "model.lora={}"], "model.lora is given twice"),
        (["budget.max_hours=1", "budget.max_hours=true"], "given twice"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(tmp_path: Path, texts: list[str], words: str):
    with pytest.raises(BadUsage, match=words):
        read_assignments(texts)
    file = tmp_path / "both.yaml"
    file.write_text("grpo: {steps: 4}\ngrpo.steps: 5\n")
    with pytest.raises(BadUsage, match="given twice"):
        resolve("gsm8k-mini", "cpu-demo", {}, file=file)


def test_a_file_of_countless_fields_is_refused_soon(tmp_path: Path):
    file = tmp_path / "many.yaml"
    file.write_text("".join(f"f{n}: 1\n" for n in range(20_000)))
    with pytest.raises(BadUsage, match="more than 1000 fields"):
        resolve("gsm8k-mini", "cpu-demo", {}, file=file)
    with pytest.raises(BadUsage, match="no field f0") as caught:
        from_yaml(file.read_text())
    assert len(str(caught.value)) < 10_000


def test_the_same_setting_twice_is_no_contradiction():
    texts = ["grpo.steps=4", "grpo={steps: 4}", "model.lora={}", "model.lora.rank=8", "model.lora={}"]
    assert read_assignments(texts) == {"grpo.steps": 4, "model.lora": {}, "model.lora.rank": 8}


def test_a_locked_field_may_be_given_its_own_value(demo: RunConfig):
    assert edit(demo, {"model.name": "tiny", "seed": 4}).seed == 4


def test_a_run_yaml_can_be_given_back_and_changed_further(tmp_path: Path, demo: RunConfig):
    edited = edit(demo, {"grpo.learning_rate": 1e-5, "tracking.project": "1e-4", "grpo.steps": 7})
    file = tmp_path / "run.yaml"
    file.write_text(to_yaml(edited))
    assert from_yaml(file.read_text()) == edited
    assert resolve(None, None, {}, file=file) == edited
    assert resolve("gsm8k-mini", None, {"grpo.steps": 9}, file=file).grpo.steps == 9
    with pytest.raises(BadUsage, match="configures gsm8k-mini, not tool-math"):
        resolve("tool-math", None, {}, file=file)


def test_a_partial_file_needs_an_environment_and_is_checked_alike(tmp_path: Path):
    file = tmp_path / "part.yaml"
    file.write_text("grpo: {steps: 5, learning_rate: 1e-4}\n")
    with pytest.raises(BadUsage, match="no environment was named"):
        resolve(None, None, {}, file=file)
    assert resolve("gsm8k-mini", "cpu-demo", {}, file=file).grpo.learning_rate == 1e-4
    file.write_text("grpo: {stpes: 5}\n")
    with pytest.raises(BadUsage, match=r"no field grpo.stpes \(did you mean grpo.steps"):
        resolve("gsm8k-mini", "cpu-demo", {}, file=file)


@pytest.mark.parametrize(
    ("described", "profiles", "words"),
    [('f"about {TEXT}"', '("cpu-demo",)', "to literal values"), ('"about"', "()", "it names no profiles")],
)
def test_an_environment_that_cannot_be_used_says_why(
    tmp_path: Path, described: str, profiles: str, words: str
):
    text = f"""
from environments.base import Environment
TEXT = "x"
class Odd(Environment):
    name = "odd"
    description = {described}
    profiles = {profiles}
"""
    (tmp_path / "odd.py").write_text(text)
    with pytest.raises(BadUsage, match=f"odd cannot be used: .*{words}"):
        resolve("odd", extra_dir=tmp_path)


def test_unknown_names_come_with_the_nearest():
    with pytest.raises(BadUsage, match="did you mean gsm8k-mini"):
        resolve("gsm8k-mni")
    with pytest.raises(BadUsage, match="did you mean cpu-demo"):
        resolve("gsm8k-mini", "cpu-dmo")
    with pytest.raises(BadUsage, match="its profiles: single-gpu; gsm8k-mini can stand in"):
        resolve("gsm8k", "cpu-demo")


def write_sums(folder: Path, count: int) -> None:
    """A data set in the form of GSM8K's."""
    for split, start in (("train", 0), ("test", 1000)):
        rows = [
            {"question": f"What is {n} + 1?", "answer": f"#### {n + 1}"} for n in range(start, start + count)
        ]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_dataset_too_small_for_one_step_is_refused(tmp_path: Path):
    write_sums(tmp_path, 12)
    path = {"environment.options.path": str(tmp_path)}
    with pytest.raises(
        BadUsage, match=r"needs 16 tasks .*grpo\.batch_size 128 / grpo\.group_size 8.* has only"
    ):
        resolve("gsm8k", "single-gpu", path)
    small = {"grpo.batch_size": 32, "grpo.micro_batch_size": None, "grpo.group_size": 8}
    assert resolve("gsm8k", "single-gpu", path | small).tasks_per_step == 4


def test_options_are_judged_by_the_environment_itself():
    with pytest.raises(BadUsage, match="path"):
        resolve("gsm8k", "single-gpu", {"environment.options.path": 3})
    with pytest.raises(BadUsage, match=r"options of gsm8k: pth: no such option .*path"):
        resolve("gsm8k", "single-gpu", {"environment.options.pth": "x"})


def test_every_profile_is_a_valid_config_and_locks_only_what_exists():
    for name in profile_names():
        profile = load_profile(name)
        RunConfig.model_validate({"profile": name, "environment": {"name": "any"}, **profile.defaults})
        for field in profile.locked:
            assert any(known == field or known.startswith(field + ".") for known in FIELDS)


def test_every_number_has_bounds_at_both_ends(demo: RunConfig):
    numbers = {f: v for f, v in flatten(demo).items() if isinstance(v, int | float)}
    numbers |= dict.fromkeys(
        ["health.target_accuracy", "health.plateau_patience", "budget.max_hours", "grpo.micro_batch_size"], 3
    )
    assert len(numbers) > 25
    for sign in (-1, 1):
        said = refusal(
            demo, {f: sign * (10**23 if isinstance(v, int) else 1e300) for f, v in numbers.items()}
        )
        assert [field for field in numbers if f"{field} should be " not in said] == []


@pytest.mark.parametrize("folder", ["/etc/passwd", "/none/such", 3])
def test_the_folder_of_an_environment_must_be_one(tmp_path: Path, demo: RunConfig, folder):
    file = tmp_path / "run.yaml"
    content = demo.model_dump()
    content["environment"]["folder"] = folder
    file.write_text(dump_yaml(content))
    with pytest.raises(BadUsage, match=r"run.yaml: environment.folder "):
        resolve(None, None, {}, file=file)
    with pytest.raises(BadUsage, match=r"run.yaml: environment.folder "):
        from_yaml(file.read_text())


def test_every_field_is_documented():
    assert [field for field, text in FIELDS.items() if not text and field not in ("profile",)] == []


@pytest.mark.parametrize("name", ["../../x", "", "a" * 129, "a:b", "a\nb", "\ud800"])
def test_what_cannot_be_a_project_of_wandb_is_refused(demo: RunConfig, name: str) -> None:
    with pytest.raises(BadUsage, match="name of a W&B project"):
        edit(demo, {"tracking.project": name})
