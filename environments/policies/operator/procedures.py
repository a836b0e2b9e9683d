"""The short procedures: everything but training. Each yields its calls and returns the answer."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from environments.policies.operator import names
from environments.policies.operator.answers import (
    ENDED,
    changed_line,
    environment_lines,
    machine_line,
    run_lines,
    settings_line,
    sizes_line,
    state_name,
    status_text,
)
from environments.policies.operator.choosing import NotChosen, choose, unmatched
from environments.policies.operator.comparing import compare
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.intents import (
    Bare,
    Blocked,
    Compare,
    Describe,
    EditConfig,
    Help,
    Hold,
    HowToTrain,
    Intent,
    ListEnvironments,
    ListRuns,
    MayTrain,
    Results,
    Select,
    ShowConfig,
    Status,
    Stop,
    TestInference,
    Train,
    Unknown,
    Watch,
)
from environments.policies.operator.steps import Call, Procedure, Result, must, text
from environments.policies.operator.training import keep_tasks_per_step, refused_settings, test, train
from environments.policies.operator.understanding import understand
from environments.policies.operator.watching import follow, results_text
from environments.policies.operator.wording import LIMIT, Voice, normalise, shorten
from prompts.loader import render


def list_environments(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    listing = yield from must(
        Call("rl_list_environments", {}, say("Looking up the environments.", "查看有哪些环境。"))
    )
    rows = listing.rows("environments")
    machine = machine_line(listing.section("machine"), say)
    return say(f"Environments ({machine}):\n", f"环境（{machine}）：\n") + environment_lines(rows, say)


def describe(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    listing = yield from must(Call("rl_list_environments", {}, say("Looking up the name.", "查找名称。")))
    rows = listing.rows("environments")
    match = names.environment(intent.subject, rows)
    if (
        match.kind == "unknown"
        and not names.named(intent.subject)
        and "env" not in intent.subject.lower()
        and "环境" not in intent.subject
    ):
        return cannot(intent.subject, say)
    if match.name is None:
        return unmatched(match, rows, say)
    line = (
        say(f'I read "{match.said}" as {match.name}. ', f"把“{match.said}”理解为 {match.name}。")
        if match.kind == "misspelled"
        else ""
    )
    described = yield from must(
        Call(
            "rl_describe_environment",
            {"name": match.name},
            line + say(f"Reading {match.name}.", f"读取 {match.name}。"),
        )
    )
    return line + description_text(described, say)


def description_text(described: Result, say: Voice) -> str:
    data = described.data
    lines = [f"{text(data.get('name'))}: {text(data.get('description'))}"]
    if sizes := sizes_line(described, say):
        lines.append(say(f"Tasks: {sizes}", f"任务数：{sizes}"))
    if reward := " ".join(text(data.get("reward")).split()):
        lines.append(say(f"Reward: {shorten(reward, 300)}", f"奖励：{shorten(reward, 300)}"))
    toolsets = data.get("toolsets")
    if isinstance(toolsets, list) and toolsets:
        used = ", ".join(str(name) for name in toolsets)
        lines.append(say(f"Toolsets: {used}", f"工具集：{used}"))
    messages = described.section("example").get("messages")
    asked = (
        [text(m.get("content")) for m in messages if isinstance(m, dict) and m.get("role") == "user"]
        if isinstance(messages, list)
        else []
    )
    if asked:
        lines.append(say(f"Example: {shorten(asked[-1], 300)}", f"示例：{shorten(asked[-1], 300)}"))
    if data.get("trainable_here") is True:
        lines.append(
            say(
                f"It can be trained here: train {text(data.get('name'))}",
                f"可在本机训练：训练 {text(data.get('name'))}",
            )
        )
    else:
        lines.append(
            say(
                f"It cannot be trained here: {text(data.get('why_not'))}",
                f"无法在本机训练：{text(data.get('why_not'))}",
            )
        )
        if how := text(data.get("how_to_train_it")):
            lines.append(say(f"To train it: {how}", f"要训练它：{how}"))
    return "\n".join(lines)


def select(intent: Select, say: Voice, conversation: Conversation) -> Procedure:
    listing = yield from must(Call("rl_list_environments", {}, say("Looking up the name.", "查找名称。")))
    rows = listing.rows("environments")
    match = names.environment(intent.subject, rows)
    if match.name is None:
        return (
            cannot(intent.subject, say)
            if match.kind == "unknown" and not names.named(intent.subject)
            else unmatched(match, rows, say)
        )
    try:
        chosen = yield from choose(match, rows, intent.settings.profile, say)
    except NotChosen as reason:
        return str(reason)
    done = say(f"{chosen.name} is selected. To start: train", f"已选定 {chosen.name}。要开始，请说：训练")
    if intent.settings.changes:
        edit = EditConfig(intent.subject, intent.settings)
        done = f"{(yield from edit_config(edit, say, conversation))}\n{done}"
    return "\n".join(filter(None, [chosen.note, done]))


def show_config(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    current = yield from must(
        Call("rl_get_current_config", {}, say("Reading the current config.", "读取当前配置。"))
    )
    lines = [f"{text(current.data.get('environment'))} ({text(current.data.get('profile'))})"]
    lines += [f"  {settings_line({name: value})}" for name, value in current.section("config").items()]
    if changed := current.section("changed"):
        lines.append(
            say(
                f"Changed from the profile: {settings_line(changed)}",
                f"与配置档不同：{settings_line(changed)}",
            )
        )
    return "\n".join(lines)


def edit_config(intent: EditConfig, say: Voice, conversation: Conversation) -> Procedure:
    current = yield from must(
        Call("rl_get_current_config", {}, say("Reading the current config first.", "先读取当前配置。"))
    )
    changes = dict(intent.settings.changes)
    keep_tasks_per_step(current.section("config"), changes, intent.settings.tasks_per_step)
    edited = yield Call(
        "rl_edit_config",
        {"changes": changes},
        say(f"Setting {settings_line(changes)}.", f"设置 {settings_line(changes)}。"),
    )
    if not edited.ok:
        return refused_settings(edited, changes, current.section("locked"), say)
    changed = changed_line(edited.section("changed"))
    return say(f"Changed: {changed}.", f"已改：{changed}。")


def _run_named(subject: str, say: Voice) -> Generator[Call, Result, str | None]:
    """The id of the run that `subject` names; None where it names none, which means the newest."""
    words = names.named(subject)
    if not words:
        return None
    listing = yield from must(
        Call("rl_list_runs", {}, say(f"Looking up which run is {words[0]}.", f"查找 {words[0]} 是哪个运行。"))
    )
    found, unknown = names.runs(subject, listing.rows("runs"))
    # An unknown id goes to the tool as it is: its error names the nearest ones.
    return found[0] if found else unknown[0]


def status(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    run_id = yield from _run_named(intent.subject, say)
    found = yield from must(
        Call(
            "rl_check_status", {"run_id": run_id, "wait": False}, say("Looking at the run.", "查看运行状态。")
        )
    )
    return status_text(found, say)


def keep_watching(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    run_id = yield from _run_named(intent.subject, say)
    return (
        yield from follow(
            run_id,
            say,
            say("I wait for the next check, an alert or the end.", "等待下一次检查、警报或结束。"),
            [],
        )
    )


def results(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    run_id = yield from _run_named(intent.subject, say)
    found = yield from must(
        Call("rl_get_results", {"run_id": run_id}, say("Reading the results.", "读取结果。"))
    )
    return results_text(found, say, [])


def list_runs(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    listing = yield from must(Call("rl_list_runs", {}, say("Looking up the runs.", "查看运行列表。")))
    rows = listing.rows("runs")
    if not rows:
        return say("There are no runs yet.", "还没有任何运行。")
    return say("Runs, newest first:\n", "运行（从新到旧）：\n") + run_lines(rows, say)


def stop(intent: Stop, say: Voice, conversation: Conversation) -> Procedure:
    words = names.content_words(intent.subject)
    targets: list[str | None] = [None]
    if intent.every or words:
        listing = yield from must(
            Call("rl_list_runs", {}, say("Looking up which runs go on.", "查看正在进行的运行。"))
        )
        active = [row for row in listing.rows("runs") if row.get("state") not in ENDED]
        if not active:
            return say("No run is going on, so there is nothing to stop.", "没有正在进行的运行，无需停止。")
        if intent.every:
            targets = [text(row.get("id")) for row in active]
        else:
            found, _ = names.runs(intent.subject, active)
            targets = list(found) or _by_environment(intent.subject, active)
        if not targets:
            said = shorten(" ".join(words))
            return say(
                f'No run that goes on is called "{said}", so I stopped none. These go on:\n',
                f"正在进行的运行里没有“{said}”，因此没有停止任何运行。正在进行的：\n",
            ) + run_lines(active, say)
    lines = []
    for target in targets:
        what = target or say("the newest run", "最新的运行")
        stopped = yield from must(
            Call(
                "rl_stop_training",
                {"run_id": target, "reason": say("asked for by the person", "用户要求停止")},
                say(f"Stopping {what}.", f"停止{what}。"),
            )
        )
        run_id, state, step = (
            text(stopped.data.get("run_id")),
            state_name(stopped.data, say),
            stopped.data.get("step"),
        )
        at = say(f" at step {step}", f"，停在第 {step} 步") if isinstance(step, int) else ""
        lines.append(
            say(
                f"Run {run_id}: {state}{at}. Its results: rl-cli runs show {run_id}",
                f"运行 {run_id}：{state}{at}。结果：rl-cli runs show {run_id}",
            )
        )
    return "\n".join(lines)


def _by_environment(subject: str, rows: list[dict[str, Any]]) -> list[str | None]:
    """The newest of `rows` whose environment `subject` names in words ("the tool math run")."""
    known = [{"name": name} for name in dict.fromkeys(text(row.get("environment")) for row in rows)]
    match = names.environment(subject, known)
    return [
        text(row.get("id")) for row in rows if match.kind == "exact" and row.get("environment") == match.name
    ][:1]


def help_text(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    return render(f"operator_help{say.prompt_suffix}")
    yield


def how_to_train(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    return render(f"operator_training{say.prompt_suffix}")
    yield


def may_train(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    return say(
        "A question starts nothing. To start, say it as an order, for example: train gsm8k-mini for 40 steps",
        "提问不会启动任何训练。要开始，请直接下指令，例如：训练 gsm8k-mini 40 步",
    )
    yield


def hold(intent: Hold, say: Voice, conversation: Conversation) -> Procedure:
    if intent.what == "stop":
        return say("I stop nothing.", "好的，不停止任何运行。")
    if intent.what == "later":
        return say(
            "I cannot do things at a later time: nothing was started or stopped. Ask again when it is time.",
            "我不能定时执行：没有启动或停止任何运行。到时候请再说一次。",
        )
    return say("I start nothing.", "好的，不启动任何训练。")
    yield


def blocked(intent: Blocked, say: Voice, conversation: Conversation) -> Procedure:
    lines = []
    for problem in intent.problems:
        said = shorten(problem.text)
        lines.append(
            {
                "conflict": say(f"Two values for one setting: {said}.", f"同一设置有两个值：{said}。"),
                "unclear": say(f'I cannot read this setting: "{said}".', f"无法理解这个设置：“{said}”。"),
                "model": say(
                    f'"{said}" is no full model name: give it as on Hugging Face, for example Qwen/Qwen3-0.6B.',
                    f"“{said}”不是完整的模型名：请按 Hugging Face 的写法，例如 Qwen/Qwen3-0.6B。",
                ),
                "restriction": say(
                    f'I do not understand what is excluded by "{said}".', f"无法理解“{said}”所排除的内容。"
                ),
                "condition": say(
                    f'I cannot act on the condition in "{said}".', f"无法按“{said}”中的条件执行。"
                ),
            }[problem.kind]
        )
    lines.append(
        say(
            "So I did nothing. Say it again without that, or set fields by name, for example grpo.steps=40.",
            "因此什么都没有做。请去掉这部分再说一次，或直接写字段名，例如 grpo.steps=40。",
        )
    )
    return "\n".join(lines)
    yield


def bare(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    """A name alone: the answer to "which environment?", or a wish to see what it is."""
    if not names.content_words(intent.subject):
        return cannot(intent.subject, say)
    if (asked := _waiting_train(conversation)) is not None:
        return (
            yield from train(
                Train(intent.subject, asked.settings, sure=False, anyway=asked.anyway), say, conversation
            )
        )
    if not names.named(intent.subject):
        return cannot(intent.subject, say)
    return (yield from describe(intent, say, conversation))


def _waiting_train(conversation: Conversation) -> Train | None:
    """The last request, if it was one to train for which no environment could be chosen."""
    if not conversation.earlier:
        return None
    turn = conversation.earlier[-1]
    if turn.called("rl_select_environment"):
        return None
    return next((intent for intent in understand(turn.request) if isinstance(intent, Train)), None)


def unknown(intent: Unknown, say: Voice, conversation: Conversation) -> Procedure:
    if intent.too_long:
        return say(
            f"The request is longer than {LIMIT} characters, so I did nothing: say it in a sentence or two.",
            f"请求超过 {LIMIT} 个字符，因此什么都没有做：请用一两句话说明。",
        )
    return cannot(intent.subject, say)
    yield


def cannot(request: str, say: Voice) -> str:
    return render(f"operator_cannot{say.prompt_suffix}", request=shorten(normalise(request)))


PROCEDURES: dict[type[Intent], Callable[[Any, Voice, Conversation], Procedure]] = {
    Train: train,
    TestInference: test,
    ListEnvironments: list_environments,
    Describe: describe,
    Select: select,
    ShowConfig: show_config,
    EditConfig: edit_config,
    Status: status,
    Watch: keep_watching,
    Stop: stop,
    Results: results,
    Compare: compare,
    ListRuns: list_runs,
    Help: help_text,
    HowToTrain: how_to_train,
    MayTrain: may_train,
    Hold: hold,
    Blocked: blocked,
    Bare: bare,
    Unknown: unknown,
}
