"""What TRL and its chat templates make of exported rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.messages import assistant, tool_call, tool_result, user
from rl_cli.data.errors import Unconvertible
from rl_cli.data.export.exporting import export
from rl_cli.data.export.source import Source
from rl_cli.data.export.trl import to_trl
from rl_cli.data.hygiene.masking import Masker
from tests.data.rows_kit import SEARCH, calling, plain, row, varied, write_rows

WITHOUT_OBJECTS = ("deepseek_r1_distill", "deepseek_r1_distill_training", "deepseekv3")
"""Templates that want arguments as text; of the last, TRL has a version for training that takes objects."""


def templates() -> dict[str, str]:
    """The chat templates of TRL that write calls."""
    import trl

    folder = Path(trl.__file__).parent / "chat_templates"
    texts = {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.jinja"))}
    return {
        name: text for name, text in texts.items() if "tool_calls" in text and name not in WITHOUT_OBJECTS
    }


def small_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="<|im_end|>", pad_token="<p>"
    )


def test_trj_08_arguments_are_objects_in_the_rendered_block() -> None:
    [call] = to_trl(calling(1, SEARCH, '{"city":"Oslo"}'))["messages"][2]["tool_calls"]
    assert call["function"] == {"name": "search", "arguments": {"city": "Oslo"}}
    nested = to_trl(calling(1, SEARCH, '{"q": "{\\"a\\": 1}"}'))["messages"][2]["tool_calls"]
    assert nested[0]["function"]["arguments"] == {"q": '{"a": 1}'}


@pytest.mark.train
def test_trj_08_every_template_writes_objects_and_the_tools() -> None:
    tokenizer = small_tokenizer()
    example = to_trl(calling(1, SEARCH, '{"city": "Oslo"}'))
    others = [to_trl(each) for each in (plain(2), calling(3, SEARCH, "{}"))]
    found = templates()
    assert len(found) > 30
    thought = 0
    for name, template in found.items():
        text, *rest = (
            tokenizer.apply_chat_template(
                each["messages"], tools=each["tools"], tokenize=False, chat_template=template
            )
            for each in (example, *others)
        )
        assert "Oslo" in text, name
        assert '\\"city' not in text, name
        if "deepseek" not in name:  # it writes no schemas
            assert "depth" in text, name
        assert not re.search(r"\bNone\b|undefined", text + "".join(rest)), name
        thought += "Let me look." in text
    assert thought > 20


@pytest.mark.train
def test_trj_08_a_hermes_block_parses_to_an_object() -> None:
    example = to_trl(calling(1, SEARCH, '{"city": "Oslo"}'))
    text = small_tokenizer().apply_chat_template(
        example["messages"], tools=example["tools"], tokenize=False, chat_template=templates()["qwen3"]
    )
    *_, block = re.findall(r"<tool_call>\n(.*?)\n</tool_call>", text, re.DOTALL)
    assert json.loads(block) == {"name": "search", "arguments": {"city": "Oslo"}}


def test_calls_that_are_no_objects_leave_the_row_out_and_say_why(tmp_path: Path) -> None:
    for arguments in ('"{}"', "[1]", '{"a": NaN}', "not JSON", '{"a": '):
        with pytest.raises(Unconvertible, match="no JSON object"):
            to_trl(calling(1, SEARCH, arguments))
    source = Source(write_rows(tmp_path / "rows.jsonl", [plain(1), calling(2, SEARCH, "nope")]), "rows")
    report = export(source, "trl", tmp_path / "out.jsonl", Masker(), None, lambda *_: None)
    assert (report.read, report.written) == (2, 1)
    assert dict(report.left_out) == {"a call's arguments are no JSON object": 1}


def test_parallel_calls_and_their_results_keep_their_ids() -> None:
    calls = [tool_call(f"c{n}", "search", "{}") for n in (1, 2)]
    messages = [user("go"), assistant("Both.", calls), *(tool_result(call, call["id"]) for call in calls)]
    made = to_trl(row(1, [*messages, assistant("ok")], [SEARCH]))["messages"]
    assert [call["id"] for call in made[1]["tool_calls"]] == [m["tool_call_id"] for m in made[2:4]]
    assert [message["content"] for message in made] == ["go", "Both.", "c1", "c2", "ok"]


@pytest.mark.train
@pytest.mark.parametrize("name", ["set", "rows.jsonl", pytest.param("rows.parquet", marks=pytest.mark.soak)])
def test_an_exported_set_takes_one_step_of_sft(tmp_path: Path, name: str) -> None:
    from datasets import load_dataset
    from transformers import Qwen2Config, Qwen2ForCausalLM
    from trl import SFTConfig, SFTTrainer

    source = Source(write_rows(tmp_path / "in.jsonl", varied()), "rows")
    export(source, "trl", tmp_path / name, Masker(), None, lambda *_: None)
    kind = {"rows.parquet": "parquet", "rows.jsonl": "json"}.get(name)
    where = {"data_files": str(tmp_path / name)} if kind else {}
    rows = load_dataset(kind or str(tmp_path / name), split="train", cache_dir=str(tmp_path / "c"), **where)
    tokenizer = small_tokenizer()
    tokenizer.chat_template = templates()["qwen3_training"]
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tokenizer), num_key_value_heads=1, **shape))
    trainer = SFTTrainer(
        model,
        SFTConfig(
            output_dir=str(tmp_path / "model"),
            max_steps=1,
            per_device_train_batch_size=6,
            max_length=2048,
            assistant_only_loss=True,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=rows,
        processing_class=tokenizer,
    )
    assert trainer.train().training_loss > 0
    texts = [tokenizer.decode(each) for each in trainer.train_dataset["input_ids"]]
    assert '{"name": "search", "arguments": {"city": "Oslo"}}' in texts[2]
    assert "Let me look." in texts[2]
