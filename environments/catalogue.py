"""Which environments there are. Listing parses files and imports none; loading imports, in workers only.

Built-in environments are the modules of this package that define a class with a literal `name`; a person's
own are the `*.py` files of one folder (names that begin with an underscore are left out: helpers).
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from environments.base import Environment
from rl_cli.core.errors import BadUsage, Refused, RlCliError, WorkFailed, did_you_mean
from rl_cli.core.handwritten import read_bytes, short
from rl_cli.core.own_process import provider_keys, without_secrets
from rl_cli.core.processes import TREE, ProcessIdentity, kill_tree, python_module

DESCRIBE_SECONDS = 120
"""How long an environment may take to be imported and described."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""It becomes a part of run ids, paths and command lines."""
_DEFAULTS: dict[str, Any] = {"description": "", "profiles": ("single-gpu",), "stand_in": None}


@dataclass(frozen=True)
class EnvironmentInfo:
    """What can be known of an environment without importing it."""

    name: str
    description: str
    profiles: tuple[str, ...]
    stand_in: str | None
    path: Path
    module: str
    builtin: bool
    problem: str | None = None
    """Why it cannot be used; None where nothing is wrong at first sight."""
    class_name: str = ""


def list_environments(extra_dir: Path | str | None = None) -> list[EnvironmentInfo]:
    """Built-in environments, then a person's own from `extra_dir` (it need not exist), each by file name."""
    found = [info for path in _files(Path(__file__).parent) for info in _read(path, builtin=True)]
    if extra_dir is not None:
        for info in (i for path in _files(Path(extra_dir)) for i in _read(path, builtin=False)):
            taken = next((other for other in found if other.name == info.name), None)
            problem = info.problem or (taken and f"the name {info.name} is taken by {taken.path}")
            found.append(EnvironmentInfo(**{**vars(info), "problem": problem}))
    return found


def find_environment(name: str, extra_dir: Path | str | None = None) -> EnvironmentInfo:
    """Raises BadUsage where no environment has that name (with the nearest ones) or its file is broken."""
    known = list_environments(extra_dir)
    info = next((i for i in known if i.name == name), None)
    if info is None:
        raise BadUsage(f"unknown environment: {name}", did_you_mean(name, [i.name for i in known]))
    if info.problem:
        raise BadUsage(f"the environment {name} cannot be used: {info.problem}", str(info.path))
    return info


def load_environment(
    name: str, options: dict[str, Any] | None = None, extra_dir: Path | str | None = None
) -> Environment:
    """Imports an environment and makes one with these options. For processes that may run a person's code.

    Raises:
        BadUsage: an unknown name, a broken file, an unknown or wrong option (all of them are named).
    """
    from pydantic import ValidationError

    info = find_environment(name, extra_dir)
    module = importlib.import_module(info.module) if info.builtin else _import_file(info)
    cls: type[Environment] = getattr(module, info.class_name)
    if not issubclass(cls, Environment):
        raise BadUsage(f"{info.path}: {info.class_name} is not derived from environments.base.Environment")
    try:
        config = cls.Config(**(options or {}))
    except ValidationError as error:
        fields = list(cls.Config.model_fields)
        problems = []
        for item in error.errors():
            option = ".".join(map(str, item["loc"]))
            extra = item["type"] == "extra_forbidden"
            hint = did_you_mean(option, fields) if fields else "it has no options"
            problems.append(f"{option}: no such option ({hint})" if extra else f"{option}: {item['msg']}")
        raise BadUsage(f"options of {name}: {'; '.join(problems)}") from error
    return cls(config)


def describe(
    name: str, options: dict[str, Any] | None = None, extra_dir: Path | str | None = None
) -> dict[str, Any]:
    """Describes an environment in a child process, so that its code is never imported here.

    Returns:
        name, description, profiles, stand_in, sizes ({split: number of tasks or None where endless}),
        options_schema (JSON schema), toolsets, reward (text), example ({task_id, messages}), has_warm_start,
        problem. Where the data cannot be had, `problem` says why and sizes and example are None; else problem
        is None.

    Raises:
        BadUsage: as load_environment().
        WorkFailed: the environment's code failed; the message ends with what it raised, on one line.
    """
    info = find_environment(name, extra_dir)
    arguments = [name, json.dumps(options or {})]
    arguments += [str(Path(extra_dir).resolve())] if extra_dir is not None else []
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
        hidden = provider_keys(os.environ) if info.builtin else without_secrets(os.environ, "HF_")
        code = _run_describer(arguments, out, log, hidden)
        out.seek(0)
        log.seek(0)
        said, printed = out.read(), log.read().decode("utf-8", "replace")
    if code is None:
        raise WorkFailed(f"describing {name} took over {DESCRIBE_SECONDS:g} s", str(info.path))
    try:
        answer: dict[str, Any] = json.loads(said)
    except ValueError:  # the process ended before it could answer
        lines = [line.strip() for line in printed.splitlines() if line.strip()]
        answer = {"failed": lines[-1] if lines else f"exit code {code}"}
    if "failed" in answer:
        problem = f"the environment {name} failed when described: {short(answer['failed'], 500)}"
        raise WorkFailed(problem, str(info.path))
    if "error" in answer:
        raised: dict[int, type[RlCliError]] = {2: BadUsage, 3: Refused}
        error_class = raised.get(answer["error"]["exit_code"], WorkFailed)
        raise error_class(answer["error"]["message"], answer["error"]["hint"])
    return answer


def _run_describer(
    arguments: list[str], out: IO[bytes], log: IO[bytes], hidden: Collection[str]
) -> int | None:
    """Runs environments.describe to its end, and ends whatever it started; None if it took too long.

    It writes its answer to `out` and what it prints to `log`: files, since a pipe is open for as long as
    anything that it started. Its standard input is a pipe that ends with this process, and so does it. The
    `hidden` variables of the environment are kept from it.
    """
    mark = os.urandom(8).hex()
    marks = " ".join([*os.environ.get(TREE, "").split(), mark])
    argv = python_module("environments.describe", str(out.fileno()), *arguments)
    with subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        pass_fds=[out.fileno()],
        start_new_session=True,
        env={name: value for name, value in os.environ.items() if name not in hidden} | {TREE: marks},
    ) as child:
        tree = ProcessIdentity.of(child.pid)  # nobody has reaped it yet
        try:
            return child.wait(DESCRIBE_SECONDS)
        except subprocess.TimeoutExpired:
            return None
        finally:
            kill_tree(dataclasses.replace(tree, mark=mark), grace_seconds=0.5)


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.glob("*.py") if not p.name.startswith("_")) if folder.is_dir() else []


def _read(path: Path, builtin: bool) -> Iterator[EnvironmentInfo]:
    """The environments that one file defines; a person's file that defines none is an entry that says so."""
    module = f"environments.{path.stem}" if builtin else f"_rl_cli_environment_{path.stem}"

    def broken(problem: str) -> EnvironmentInfo:
        return EnvironmentInfo(short(path.stem), "", (), None, path, module, builtin, problem)

    try:
        tree = ast.parse(importlib.util.decode_source(read_bytes(path)), filename=str(path))
    except RlCliError as error:
        yield broken(f"cannot be read: {error}")
        return
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        yield broken(f"cannot be parsed: {getattr(error, 'msg', None) or error}{where}")
        return
    found = False
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or not node.bases:
            continue
        values = dict(_assignments(node))
        derived = any(ast.unparse(base).split(".")[-1].endswith("Environment") for base in node.bases)
        if "name" not in values and not derived:
            continue
        found = True
        try:
            literals = {k: ast.literal_eval(values[k]) if k in values else v for k, v in _DEFAULTS.items()}
            name = ast.literal_eval(values["name"])
        except (KeyError, ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            yield broken(f"{node.name} must set name, description, profiles and stand_in to literal values")
            continue
        if not isinstance(name, str) or not name or not isinstance(literals["profiles"], tuple | list):
            yield broken(f"{node.name}: name must be a text and profiles a tuple of texts")
            continue
        if not _NAME.fullmatch(name):
            yield broken(
                f"{node.name}: the name {short(name)!r} must be 1 to 64 of letters (a to z), digits, "
                "'-', '_' and '.', and begin with a letter or digit"
            )
            continue
        yield EnvironmentInfo(
            name,
            str(literals["description"]),
            tuple(map(str, literals["profiles"])),
            literals["stand_in"],
            path,
            module,
            builtin,
            None,
            node.name,
        )
    if not found and not builtin:
        yield broken("it defines no class derived from Environment")


def _assignments(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            targets = [t.id for t in statement.targets if isinstance(t, ast.Name)]
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            targets = [statement.target.id]
        else:
            continue
        if statement.value is not None:
            yield from ((target, statement.value) for target in targets)


def _import_file(info: EnvironmentInfo) -> ModuleType:
    """Imports a person's file under a private module name; the folder does not enter sys.path."""
    spec = importlib.util.spec_from_file_location(info.module, info.path)
    if spec is None or spec.loader is None:
        raise BadUsage(f"{info.path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[info.module] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[info.module]
        raise
    return module
