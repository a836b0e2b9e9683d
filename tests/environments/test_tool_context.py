"""A verifier meets what the policy left behind, and a sandbox that fails is never a reward."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from environments.base import Reward, Rollout, Task
from environments.groups import run_group
from environments.policies.base import Sampling
from environments.policies.scripted import ScriptedPolicy
from environments.tool_context import ToolContext
from tests.components import leave_out
from tests.environments.toys import Answering, Countdown
from tests.processes import started
from tools.dispatcher import ToolError
from tools.sandboxes import kinds
from tools.sandboxes.base import SandboxConfig
from tools.sandboxes.task_places import remove_places

SAMPLING = Sampling()
LOCAL = SandboxConfig("local")


def in_context(test: Any, config: SandboxConfig = LOCAL) -> None:
    if why := kinds.usable(config.kind):
        leave_out(f"sandboxes of kind {config.kind}: {why}")

    async def main() -> None:
        ctx = ToolContext("t", config=config)
        try:
            await test(ctx)
        finally:
            await ctx.cleanup()

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["local", "bubblewrap"])
def test_the_tools_work_on_one_sandbox(kind: str, tmp_path: Path) -> None:
    async def test(ctx: ToolContext) -> None:
        policy = ctx.rollout_context(("terminal",))
        assert policy.sandbox is ctx.sandbox
        assert (await ctx.terminal("mkdir d; cd d; export A=1"))["exit_code"] == 0
        assert (await ctx.terminal('echo $A; basename "$PWD"'))["stdout"] == "1\nd\n"
        await ctx.write_file("x.py", "print('hello')\n" * 20_000)
        assert len((await ctx.read_file("x.py", lines=20_000))["content"]) == 15 * 20_000
        assert (await ctx.search_files("hel+o", max_results=1))["matches"][0]["path"] == "x.py"
        assert (await ctx.call_tool("calculator", {"expression": "6*7"}))["result"] == 42
        assert (await ctx.call("rl_list_runs"))["error"]["type"] == "unknown_tool"
        (tmp_path / "in put").write_bytes(bytes(range(256)) * 1000)
        await ctx.upload(tmp_path / "in put", "up/load ed")
        await ctx.download("up", tmp_path / "back")
        assert (tmp_path / "back" / "load ed").read_bytes() == (tmp_path / "in put").read_bytes()
        with pytest.raises(ToolError, match="nothing"):
            await ctx.download("nothing", tmp_path / "nothing")

    in_context(test, SandboxConfig(kind))


def test_a_fresh_sandbox_has_the_chosen_files_only() -> None:
    async def test(ctx: ToolContext) -> None:
        await ctx.terminal("mkdir pkg; echo 'x = 1' >pkg/m.py; echo 'raise SystemExit' >sitecustomize.py")
        await ctx.terminal("echo trap >conftest.py; chmod 750 pkg/m.py; export PYTHONPATH=$PWD")
        async with ctx.fresh(["pkg", "pkg/m.py"]) as clean:
            assert (await clean.terminal("find . -type f; stat -c %a pkg/m.py"))[
                "stdout"
            ] == "./pkg/m.py\n750\n"
            assert (await clean.terminal("echo ${PYTHONPATH-none}"))["stdout"] == "none\n"
            kept = clean.sandbox
        with pytest.raises(ToolError, match="over"):
            await clean.terminal("true")
        assert kept is not ctx.sandbox
        assert "conftest.py" in (await ctx.terminal("ls"))["stdout"]
        await ctx.terminal("mkfifo pipe")
        async with ctx.fresh(["nothing", "pipe", "pkg"]) as clean:
            assert (await clean.terminal("ls"))["stdout"] == "pkg\n"

    in_context(test)


def test_a_fresh_sandbox_does_not_share_a_folder_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "solution.py").write_text("x = 1")
    (tmp_path / "conftest.py").write_text("a trap")

    async def test(ctx: ToolContext) -> None:
        async with ctx.fresh(["solution.py"]) as clean:
            assert (await clean.terminal("ls"))["stdout"] == "solution.py\n"

    in_context(test, SandboxConfig("local", workdir=tmp_path))
    assert (tmp_path / "conftest.py").exists()


def test_a_judge_is_asked() -> None:
    async def main() -> None:
        assert (
            await ToolContext("t", Answering(lambda id: f"asked by {id}")).judge("well?")
            == "asked by t/judge"
        )
        with pytest.raises(ValueError, match="none was given"):
            await ToolContext("t").judge("well?")

    asyncio.run(main())


class Coding(Countdown):
    """The policy writes a file; the reward is what the verifier finds in it."""

    config_of_sandbox: SandboxConfig | None = LOCAL

    def __init__(self) -> None:
        super().__init__()
        self.contexts: list[ToolContext] = []
        self.folders: list[str] = []

    def toolsets(self, rng: Any) -> tuple[str, ...]:
        return ("terminal",)

    def sandbox(self, task: Task) -> SandboxConfig | None:
        return self.config_of_sandbox

    async def setup(self, task: Task, ctx: ToolContext) -> None:
        self.contexts.append(ctx)

    async def reward(self, task: Task, rollout: Rollout, ctx: ToolContext) -> Reward:
        self.folders.append((await ctx.terminal("pwd"))["stdout"].strip())
        found = await ctx.terminal("cat answer")
        return Reward(float(found["stdout"]) if found["exit_code"] == 0 else 0.0)


def script(tmp_path: Path, command: str) -> ScriptedPolicy:
    file = tmp_path / "s.yaml"
    calls = [{"name": "terminal", "arguments": {"command": command}}]
    file.write_text(json.dumps([{"tool_calls": calls}, {"text": "done", "repeat": True}]))
    return ScriptedPolicy(file)


def test_every_attempt_has_a_sandbox_of_its_own_that_ends_with_it(tmp_path: Path) -> None:
    env = Coding()
    before = started()
    policy = script(tmp_path, "echo 4 >>answer; sleep 600 & cd /")
    group = asyncio.run(run_group(env, Task("t/0", {"n": 0}), policy, 4, SAMPLING))
    assert [r.reward.value for r in group.rollouts if r.reward] == [4.0] * 4, group.rollouts
    assert len(set(env.folders)) == 4
    assert not any(Path(folder).exists() for folder in env.folders)
    remove_places()
    assert started() <= before


def test_a_rollout_without_tool_calls_makes_no_sandbox() -> None:
    class Idle(Coding):
        config_of_sandbox = SandboxConfig("no-such-kind")

        async def reward(self, task: Task, rollout: Rollout, ctx: ToolContext) -> Reward:
            return Reward(1.0)

    group = asyncio.run(run_group(Idle(), Task("t/0", {"n": 0}), Answering(lambda id: 1), 2, SAMPLING))
    assert group.errors_by_kind() == {}


def test_a_sandbox_that_fails_is_no_reward(tmp_path: Path) -> None:
    class Broken(Coding):
        config_of_sandbox = SandboxConfig("no-such-kind")

    env = Broken()
    group = asyncio.run(run_group(env, Task("t/0", {"n": 0}), script(tmp_path, "true"), 2, SAMPLING))
    assert group.errors_by_kind() == {"sandbox": 2}
    assert not any(rollout.reward for rollout in group.rollouts)

    class Verifying(Broken):
        async def reward(self, task: Task, rollout: Rollout, ctx: ToolContext) -> Reward:
            return Reward(float((await ctx.terminal("true"))["exit_code"]))

    group = asyncio.run(run_group(Verifying(), Task("t/0", {"n": 0}), Answering(lambda id: 1), 2, SAMPLING))
    assert group.errors_by_kind() == {"sandbox": 2}


def test_an_image_that_cannot_be_had_costs_no_model_call() -> None:
    class Imaged(Coding):
        config_of_sandbox = SandboxConfig("no-such-kind", image="none:latest")

    policy = Answering(lambda id: 1)
    group = asyncio.run(run_group(Imaged(), Task("t/0", {"n": 0}), policy, 2, SAMPLING))
    assert group.errors_by_kind() == {"sandbox": 2}
    assert policy.opened == []
    assert "no-such-kind" in str(group.rollouts[0].error)


def test_an_environment_that_cannot_say_where_is_an_error_of_this_attempt() -> None:
    class Unsure(Coding):
        def sandbox(self, task: Task) -> SandboxConfig | None:
            raise KeyError("image")

    group = asyncio.run(run_group(Unsure(), Task("t/0", {"n": 0}), Answering(lambda id: 1), 2, SAMPLING))
    assert group.errors_by_kind() == {"sandbox": 2}


def test_a_slow_verifier_holds_up_no_other(tmp_path: Path) -> None:
    class Slow(Coding):
        def __init__(self) -> None:
            super().__init__()
            self.now = self.most = 0

        async def reward(self, task: Task, rollout: Rollout, ctx: ToolContext) -> Reward:
            self.now += 1
            self.most = max(self.most, self.now)
            await ctx.terminal("sleep 2")
            self.now -= 1
            return Reward(1.0)

    async def main() -> float:
        longest = 0.0
        work = asyncio.create_task(
            run_group(env, Task("t/0", {"n": 0}), Answering(lambda id: 1), 6, SAMPLING)
        )
        while not work.done():
            started = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - started)
        assert not (await work).errors_by_kind()
        return longest

    env = Slow()
    assert asyncio.run(main()) < 2
    assert env.most == 6
