"""GSM8K in miniature: endless word problems that a model of 0.4 M parameters learns on a laptop."""

from __future__ import annotations

from collections.abc import Iterator

from environments.base import Environment, Reward, Rollout, Split, Task, WarmStartSegment
from environments.rewards.numbers import grade_number
from environments.tool_context import ToolContext
from environments.word_problems import problems, warm_start_rows
from rl_cli.core.messages import Message, user


class Gsm8kMini(Environment):
    name = "gsm8k-mini"
    description = "Two-step word problems in GSM8K's format, endless and made on the spot."
    profiles = ("cpu-demo",)
    stand_in = None

    def size(self, split: Split) -> int | None:
        return None

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        for number, problem in enumerate(problems(split, seed)):
            data = {"question": problem.question, "answer": problem.answer, "template": problem.template}
            yield Task(f"{self.name}/{split}/{seed}/{number}", data)

    def prompt(self, task: Task) -> list[Message]:
        return [user(task.data["question"])]

    async def reward(self, task: Task, rollout: Rollout, ctx: ToolContext) -> Reward:
        """1 where the number after #### is the answer, else 0; a text without the mark gets 0."""
        assert rollout.result is not None
        text = rollout.result.final_text
        marked = "####" in text
        correct = float(marked and grade_number(str(task.data["answer"]), text).correct)
        return Reward(correct, {"correct": correct, "marker": float(marked)})

    def warm_start(self, seed: int, count: int) -> list[list[WarmStartSegment]] | None:
        return [
            [WarmStartSegment(prompt, trained=False), WarmStartSegment(completion, trained=True)]
            for prompt, completion in warm_start_rows(seed, count)
        ]
