"""Configs are resolved and edited here: several changes together or none, and every problem named at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from environments.catalogue import describe, find_environment, list_environments
from rl_cli.config import fields
from rl_cli.config.fields import OPTIONS, flatten, spread
from rl_cli.config.machine import choose_profile
from rl_cli.config.profiles import Profile, load_profile
from rl_cli.config.tree import RunConfig
from rl_cli.config.yaml_text import dump_yaml, parse_yaml, read_yaml
from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.handwritten import short

_FIXED = {
    "profile": "choose it when the config is begun: select the environment again with it, or use --profile",
    "environment.name": "another environment has other options: select that one instead",
    "environment.folder": "it belongs to the environment that was selected",
}


def resolve(
    environment: str | None,
    profile: str | None = None,
    changes: dict[str, Any] | None = None,
    *,
    file: Path | None = None,
    extra_dir: Path | str | None = None,
) -> RunConfig:
    """Builds the config of a run: the profile's defaults, then the file's values, then the changes.

    Args:
        environment: Its name; None takes the file's.
        profile: None takes the file's, else what the machine and the environment allow.
        changes: Dotted field -> value.
        file: A YAML file of fields, for instance the run.yaml of an earlier run.
        extra_dir: A folder of the user's own environments.

    Raises:
        BadUsage: With every problem in one line.
    """
    values = spread(read_yaml(file)) if file else {}
    environment = environment or values.get("environment.name")
    if not environment:
        raise BadUsage("no environment was named", "rl-cli envs list shows them")
    if values.get("environment.name", environment) != environment:
        configured = short(str(values["environment.name"]))
        raise BadUsage(f"{file} configures {configured}, not {short(environment)}", "leave one out")
    if problem := _folder_problem(values.get("environment.folder")):
        raise BadUsage(f"{file}: {problem}")
    extra_dir = values.get("environment.folder") or extra_dir
    known = {info.name: info for info in list_environments(extra_dir)}
    if environment not in known:
        name = short(str(environment))
        raise BadUsage(f"there is no environment {name!r}", did_you_mean(name, tuple(known)))
    offered, stand_in = known[environment].profiles, known[environment].stand_in
    if problem := known[environment].problem or (None if offered else "it names no profiles"):
        raise BadUsage(f"{environment} cannot be used: {problem}", str(known[environment].path))
    chosen = load_profile(str(profile or values.get("profile") or choose_profile(offered)))
    if chosen.name not in offered:
        raise BadUsage(
            f"{environment} cannot be learned with the profile {chosen.name}",
            f"its profiles: {', '.join(offered)}" + (f"; {stand_in} can stand in for it" if stand_in else ""),
        )
    wanted = {field: value for field, value in values.items() if field not in _FIXED} | spread(changes or {})
    start, description = _begin(environment, chosen, extra_dir, _options(wanted))
    return _edit(start, wanted, description)


def starting_config(
    environment: str,
    profile: Profile,
    extra_dir: Path | str | None = None,
    wanted_options: dict[str, Any] | None = None,
) -> RunConfig:
    """The profile's defaults with the environment's own; nothing is judged yet.

    Args:
        wanted_options: What the options are going to be: an environment that looks for its data while it is
            described then looks in the right place.
    """
    return _begin(environment, profile, extra_dir, wanted_options or {})[0]


def _begin(
    environment: str, profile: Profile, extra_dir: Path | str | None, wanted_options: dict[str, Any]
) -> tuple[RunConfig, dict[str, Any] | None]:
    """The starting config, and the environment's description with the wanted options where it takes them."""
    wanted: dict[str, Any] | None = None
    try:
        description = wanted = describe(environment, wanted_options, extra_dir)
    except BadUsage:  # named by edit(), with all that is wrong
        description = describe(environment, {}, extra_dir)
    schema = description["options_schema"].get("properties", {})
    options = {name: option["default"] for name, option in schema.items() if "default" in option}
    own = not find_environment(environment, extra_dir).builtin
    folder = str(Path(extra_dir).resolve()) if own and extra_dir else None
    section = {"name": environment, "options": options, "folder": folder}
    config = RunConfig.model_validate({"profile": profile.name, "environment": section, **profile.defaults})
    return config, wanted


def edit(config: RunConfig, changes: dict[str, Any]) -> RunConfig:
    """Returns a new config with all the changes; `config` itself is left as it was.

    Args:
        changes: Dotted field -> value. A mapping for a section is read as its fields.

    Raises:
        BadUsage: With every problem in one line; no change is applied then.
    """
    return _edit(config, changes)


def _edit(config: RunConfig, changes: dict[str, Any], description: dict[str, Any] | None = None) -> RunConfig:
    """As `edit`; `description` is the environment's with the changed options, where it is known already."""
    changes = spread(changes)
    profile, current = load_profile(config.profile), flatten(config)
    refusals = {field: _refuse(field, value, current, profile) for field, value in changes.items()}
    accepted = {field: changes[field] for field, refusal in refusals.items() if refusal is None}
    problems = [refusal for refusal in refusals.values() if refusal]

    edited, broken = _validated(config, accepted)
    problems += broken
    options = config.environment.options | _options(accepted)
    try:
        description = description or describe(config.environment.name, options, config.environment.folder)
    except BadUsage as error:
        problems.append(str(error))
    else:
        if edited and edited.backend.name == "trl":
            problems += fit_problems(edited, description)
    if problems or not edited:
        note = "nothing was changed" if len(changes) > 1 else None
        raise BadUsage("; ".join(dict.fromkeys(problems)), note)
    return edited


def _folder_problem(folder: Any) -> str | None:
    """Not a rule of the tree: a finished run may be looked at when the folder of its environment is gone."""
    if folder is None or (isinstance(folder, str) and Path(folder).is_dir()):
        return None
    return f"environment.folder must be a folder that exists, not {short(repr(folder))}"


def _options(changes: dict[str, Any]) -> dict[str, Any]:
    return {f.removeprefix(OPTIONS + "."): v for f, v in changes.items() if f.startswith(OPTIONS + ".")}


def _refuse(field: str, value: Any, current: dict[str, Any], profile: Profile) -> str | None:
    """Why a field may not be changed at all, whatever the value; None if it may, or if nothing changes."""
    if field not in fields.FIELDS and field not in fields.SECTIONS and not field.startswith(OPTIONS + "."):
        return fields.unknown_field(field)
    if field in current and current[field] == value and type(current[field]) is type(value):
        return None
    why = _FIXED.get(field) or profile.lock_reason(field)
    return f"{field} is locked: {why}" if why else None


def _validated(config: RunConfig, changes: dict[str, Any]) -> tuple[RunConfig | None, list[str]]:
    """Applies the changes; None where rules across fields are broken, and every problem.

    What is wrong in itself is left out of a second try, so that the rules are tried on the rest.
    """
    problems: list[str] = []
    while True:
        tree = config.model_dump()
        for field, value in changes.items():
            fields.put(tree, field, value)
        try:
            return RunConfig.model_validate(tree), problems
        except ValidationError as error:
            found = fields.explain(error)
            problems += [text for _, text in found]
            wrong = {name for name in changes for field, _ in found if field and fields.overlap(name, field)}
            if not wrong:
                return None, problems
            changes = {field: value for field, value in changes.items() if field not in wrong}


def fit_problems(config: RunConfig, description: dict[str, Any]) -> list[str]:
    """What this config asks for and the environment, as describe() describes it, does not have."""
    name, grpo = config.environment.name, config.grpo
    sizes = description["sizes"] or {}  # unknown where its data cannot be had here, None where endless
    train, test = sizes.get("train"), sizes.get("test")
    problems = []
    if train is not None and train < config.tasks_per_step:
        problems.append(
            f"a step needs {config.tasks_per_step} tasks (grpo.batch_size {grpo.batch_size} / "
            f"grpo.group_size {grpo.group_size}), and {name} has only {train} to train on"
        )
    if test == 0:
        problems.append(f"{name} has no test tasks with these options, so nothing could be measured")
    if config.model.name == "tiny" and not description["has_warm_start"]:
        problems.append(
            f"{name} has no worked solutions for sft, and the tiny model cannot learn without them"
        )
    return problems


def data_problem(config: RunConfig) -> str | None:
    """Why the environment's data cannot be had here (no file, no network); ask before a run is started."""
    section = config.environment
    problem: str | None = describe(section.name, section.options, section.folder)["problem"]
    return problem


def changed_fields(config: RunConfig) -> dict[str, Any]:
    """The dotted fields whose value is not what the config started from, with their values."""
    section = config.environment
    start = flatten(starting_config(section.name, load_profile(config.profile), section.folder))
    return {field: value for field, value in flatten(config).items() if start.get(field) != value}


def to_yaml(config: RunConfig) -> str:
    return dump_yaml(config.model_dump())


def from_yaml(text: str, source: str = "run.yaml") -> RunConfig:
    """Reads a whole config, as to_yaml writes it.

    Raises:
        BadUsage: With every problem in one line, beginning with `source`.
    """
    content = parse_yaml(text, source)
    if not isinstance(content, dict):
        raise BadUsage(f"{source} must hold a mapping of fields to values")
    try:
        config = RunConfig.model_validate(content)
        if problem := _folder_problem(config.environment.folder):
            raise BadUsage(f"{source}: {problem}")
        return config
    except ValidationError as error:
        raise BadUsage(f"{source}: " + "; ".join(text for _, text in fields.explain(error))) from error
