"""What requests are understood as, in English and Chinese, and above all what does not start a training."""

from __future__ import annotations

import pytest

from environments.policies.operator.intents import (
    Bare,
    Best,
    Blocked,
    Compare,
    Costs,
    Describe,
    EditConfig,
    Help,
    Hold,
    HowLong,
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
from environments.policies.operator.understanding import understand

PHRASES: dict[type[Intent], str] = {
    Train: """
        Train a GSM8K model
        train gsm8k-mini
        TRAIN GSM8K-MINI!
        Please train gsm8k-mini until 90% accuracy.
        Could you train tool-math for me?
        could you please train tool-math?
        can you train gsm8k-mini for 60 steps?
        I want to train a GSM8K model
        I'd like you to train gsm8k-mini
        let's train gsm8k-mini
        Hi, please train gsm8k-mini.
        go ahead and train it anyway
        start training on gsm8k-mini
        start a gsm8k-mini training
        start a training run on gsm8k-mini with seed 4
        fine-tune a model on gsm8k
        Using gsm8k-mini, train a model with lr 1e-4
        On gsm8k-mini train a model
        train gsm8k-mini, don't ask me
        train gsm8k-mini without wandb
        train gsm8k-mini if possible
        train gsm8k-mini, stop early if it gets worse
        don't train gsm8k, train gsm8k-mini
        run grpo on gsm8k-mini
        run gsm8k-mini for 40 steps
        make me a GSM8K model
        train
        训练一个 GSM8K 模型
        请训练一个GSM8K模型
        帮我训练一个 GSM8K 模型
        可以帮我训练 gsm8k-mini 吗？
        开始训练 gsm8k-mini
        开始 gsm8k-mini 的训练
        在 gsm8k-mini 上训练一个模型，直到准确率达到９０％
        我想训练 gsm8k
        我要一个 GSM8K 模型
        跑一下 gsm8k-mini
        训练计算器环境
        重新训练，学习率改成 1e-4
        先测试再训练 gsm8k-mini
        训练 gsm8k-mini，不要问我
        训练 gsm8k-mini，如果变差就停止
        用 gsm8k-mini train 60 步
        帮我跑一个 gsm8k-mini 的训练，60步
        麻烦训练 gsm8k-mini，谢谢
        在数学应用题上训练一个模型
        ok now train it
        yes, train gsm8k-mini
        train gsm8k-mini to 90%
        微调一个模型
        把 gsm8k-mini 训练到 90% 准确率，最多 5 步
        将 gsm8k-mini 训练 20 步
        """,
    HowToTrain: """
        how would I train GSM8K?
        how do I train gsm8k
        can you explain training?
        explain training
        what happens if I train
        what happens if I train gsm8k?
        If I train gsm8k, what happens?
        what if we train gsm8k-mini for 60 steps?
        should I train gsm8k?
        is it hard to train gsm8k?
        It is hard to train gsm8k.
        I trained gsm8k yesterday
        why not train gsm8k?
        what does 'train gsm8k' do?
        to train gsm8k you need a GPU
        do I need a GPU to train?
        tell me how to train gsm8k
        I wonder whether to train gsm8k
        what is reinforcement learning?
        怎么训练 GSM8K？
        如何训练一个 GSM8K 模型
        GSM8K 怎么训练
        请问怎么训练 gsm8k
        解释一下训练
        什么是训练？
        如果训练会怎样
        如果我训练 gsm8k 会发生什么？
        应该训练 gsm8k 吗？
        要不要训练 gsm8k
        为什么要训练？
        训练 gsm8k 很难
        假设我要训练 gsm8k
        考虑训练 gsm8k
        也许可以训练 gsm8k
        maybe train gsm8k
        pretend to train gsm8k
        write a script to train gsm8k
        """,
    HowLong: """
        how long does training take?
        how long would training gsm8k-mini for 100 steps take?
        how long would it take to train gsm8k-mini?
        训练 gsm8k 需要多久？
        """,
    Costs: """
        what did that cost?
        how much have I spent today?
        how much does training cost?
        花了多少钱？
        这次训练的费用是多少
        """,
    Best: """
        which run is the best
        what is my best run?
        compare my best runs
        how do my runs compare?
        compare all runs
        哪个最好
        最好的运行是哪个？
        比较所有运行
        """,
    MayTrain: """
        Can you train a GSM8K model?
        can you train gsm8k?
        train gsm8k-mini?
        能训练一个 GSM8K 模型吗？
        能不能训练 gsm8k？
        """,
    Hold: """
        don't train yet
        don't train anything
        Do not start training.
        please don't start a run
        never train gsm8k
        no training please
        train gsm8k-mini but not yet
        train gsm8k-mini tomorrow
        don't stop the run
        do not stop it
        don't stop training
        stop the run in an hour
        not yet
        不要训练
        先别训练
        别训练 gsm8k
        不要开始训练
        我不想训练
        明天训练 gsm8k-mini
        训练 gsm8k-mini，先别开始
        我没说要训练
        训练 gsm8k-mini 算了
        I don't want you to train anything
        under no circumstances train gsm8k-mini
        不要停止训练
        别停
        """,
    Blocked: """
        train gsm8k-mini but not on the GPU
        train gsm8k-mini without dropout
        train gsm8k-mini if the machine has a GPU
        train gsm8k-mini with a fast lr
        train gsm8k-mini for 60 steps, no, 40 steps
        train gsm8k-mini for a few steps
        train gsm8k with qwen3-0.6b
        train gsm8k-mini with seeds 1, 2 and 3
        train gsm8k-mini, stop if accuracy drops below 50%
        stop when it reaches 90%
        训练 gsm8k-mini 但不要用 GPU
        训练 gsm8k-mini 3 轮
        train all environments
        delete all runs, then train gsm8k-mini
        do not, under any circumstances, train gsm8k-mini
        达到 90% 就停
        """,
    Status: """
        how is it going?
        How's it going
        status
        what's the status of the run?
        progress?
        is it done yet?
        is training going well?
        how far is it
        how long will it take
        when will it be done?
        show me the latest run
        why did it fail?
        should I stop it?
        check the status
        状态
        进展如何
        怎么样了？
        还要多久？
        训练完了吗
        训练怎么样了
        训练卡住了吗
        """,
    Stop: """
        stop the run
        stop
        Stop training!
        abort
        cancel the training please
        can you stop it?
        please stop gsm8k-mini-1129-ab12
        stop all runs
        kill it
        停止训练
        停
        停掉它
        取消训练
        终止所有运行
        不要再训练了
        """,
    Results: """
        show results
        results
        what are the results?
        how did it go?
        how good is the model?
        what accuracy did it reach?
        give me the results
        did it work?
        结果
        看看训练结果
        效果怎么样？
        准确率是多少
        总结一下上一次训练
        summarize the last training
        """,
    Compare: """
        compare the last two runs
        compare
        compare RUN_A and RUN_B
        which run is better?
        gsm8k-mini-1 vs gsm8k-mini-2
        比较
        比较最近两次运行
        对比一下最近三个运行
        哪个更好？
        """,
    ListEnvironments: """
        list environments
        what environments are there?
        show all envs
        what can I train?
        which environment should I train?
        Don't train yet, just list the environments
        列出环境
        有哪些环境？
        能训练什么？
        暂时不要训练，先列出环境
        """,
    Describe: """
        describe gsm8k-mini
        what is gsm8k-mini?
        tell me about tool-math
        show gsm8k
        介绍 gsm8k-mini
        gsm8k-mini 是什么？
        """,
    ListRuns: """
        list runs
        what runs are there?
        show all runs
        列出所有运行
        有哪些运行
        """,
    Watch: """
        watch the run
        keep watching
        continue
        wait for it to finish
        继续
        等它跑完
        盯着这次训练
        """,
    TestInference: """
        test gsm8k-mini
        test inference on gsm8k-mini
        run a smoke test
        测试 gsm8k-mini
        """,
    ShowConfig: "训练之前先看看配置\nshow the config\nwhat is the learning rate?\n查看配置\n学习率是多少？",
    EditConfig: "set the learning rate to 1e-4\nset grpo.steps=20\n把学习率设为 1e-4",
    Select: "use gsm8k-mini\nselect tool-math\n选择 gsm8k-mini",
    Help: """
        help
        what can you do?
        who are you
        hello
        are you a language model?
        帮助
        你能做什么？
        你是语言模型吗？
        你好
        """,
    Bare: "gsm8k-mini\nyes\nok\nmake a table\n写一首诗",
    Unknown: """
        write a long poem about the sea
        I would rather talk with you about my holidays
        Delete all runs
        can you remove the old runs?
        how do I delete a run?
        删除所有运行
        把所有运行都删掉
        I think that 60 steps are far too many for this
        """,
}
TABLE = [
    (line.strip(), kind) for kind, phrases in PHRASES.items() for line in phrases.splitlines() if line.strip()
]


@pytest.mark.parametrize(("phrase", "kind"), TABLE, ids=[phrase for phrase, _ in TABLE])
def test_phrase_is_understood(phrase: str, kind: type[Intent]) -> None:
    assert [type(intent) for intent in understand(phrase)] == [kind]


@pytest.mark.parametrize(
    ("phrase", "kinds"),
    [
        ("stop the run and train gsm8k-mini with lr 1e-4", [Stop, Train]),
        ("train gsm8k-mini and compare it with the last run", [Train, Compare]),
        ("train gsm8k-mini and show me the results", [Train]),
        ("list the environments and train gsm8k-mini", [Train]),
        ("use gsm8k-mini. train 60 steps", [Train]),
        ("stop the run and show results", [Stop, Results]),
        ("list environments, then list runs", [ListEnvironments, ListRuns]),
        ("先停止当前训练，再训练 gsm8k-mini", [Stop, Train]),
        ("列出环境然后训练 gsm8k-mini", [Train]),
    ],
)
def test_several_orders_in_one_request(phrase: str, kinds: list[type[Intent]]) -> None:
    assert [type(intent) for intent in understand(phrase)] == kinds


def test_what_is_held_is_named() -> None:
    held = {
        phrase: understand(phrase)[0] for phrase in ("不要训练", "don't stop it", "train gsm8k-mini tomorrow")
    }
    assert [intent.what for intent in held.values() if isinstance(intent, Hold)] == ["train", "stop", "later"]


@pytest.mark.parametrize(
    "phrase", ["start gsm8k-mini", "launch the web server", "run ls -la", "跑 gsm8k-mini"]
)
def test_verbs_that_need_not_mean_training_are_unsure(phrase: str) -> None:
    (intent,) = understand(phrase)
    assert isinstance(intent, Train)
    assert not intent.sure


def test_a_long_request_is_not_acted_on() -> None:
    """Its end, which would not be read, might take back its start."""
    assert understand("train gsm8k-mini " + "and think about it " * 200 + "but do not start") == [
        Unknown(too_long=True)
    ]


@pytest.mark.parametrize("phrase", ["compare the last three runs", "对比一下最近三个运行"])
def test_how_many_runs_to_compare(phrase: str) -> None:
    (intent,) = understand(phrase)
    assert isinstance(intent, Compare)
    assert intent.count == 3
