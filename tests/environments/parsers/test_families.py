"""Which family a model belongs to."""

from __future__ import annotations

import pytest

from environments.parsers.families import family_of, parser_for


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("NousResearch/Hermes-4-70B", "hermes"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen"),
        ("Qwen/Qwen3-8B", "qwen"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_coder"),
        ("qwen3.5-plus", "qwen3_coder"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama"),
        ("meta-llama/Llama-3.2-1B-Instruct", "llama_pythonic"),
        ("Llama-4-Scout", "llama_pythonic"),
        ("Salesforce/Llama-xLAM-2-8b-fc-r", "xlam"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral_pre_v11"),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral"),
        ("mistralai/Devstral-Small-2507", "mistral"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek_v3"),
        ("deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek_v31"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek_v31"),
        ("deepseek-ai/DeepSeek-V3.2", "deepseek_v32"),
        ("moonshotai/Kimi-K2-Instruct", "kimi_k2"),
        ("zai-org/GLM-4.5-Air", "glm45"),
        ("zai-org/GLM-4.7-Flash", "glm47"),
        ("zai-org/GLM-5", "glm47"),
        ("meituan-longcat/LongCat-Flash-Chat", "longcat"),
        ("openai/gpt-oss-20b", "gpt_oss"),
        ("ibm-granite/granite-4.0-h-small", "granite4"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B", "nemotron_v3"),
        ("XiaomiMiMo/MiMo-7B-RL", "qwen"),
        ("llama3.2:1b", "llama_pythonic"),
        ("deepseek-v3p1", "deepseek_v31"),
        ("Mistral-Large-Instruct-2407", "mistral_pre_v11"),
        ("/home/hermes/models/Qwen3-Coder-30B", "qwen3_coder"),
        ("/models/Qwen3-8B/snapshots/abc12", "qwen"),
        ("XiaomiMiMo/MiMo-V2-Flash", "qwen3_coder"),
        ("stepfun-ai/Step-3.5-Flash", "step3p5"),
    ],
)
def test_the_more_specific_name_counts(model: str, family: str) -> None:
    found = parser_for(model)
    assert found
    assert found.name == family


def test_a_name_that_tells_nothing_has_no_family() -> None:
    assert parser_for("my-model") is None


@pytest.mark.parametrize(
    "model",
    [
        *("nvidia/Llama-3.1-Nemotron-Nano-8B-v1", "MiniMaxAI/MiniMax-M1-80k", "THUDM/glm-4-9b-chat"),
        *("meta-llama/Llama-2-7b", "chatglm-6b", "OpenReasoning-Nemotron-32B", "MiniMaxAI/SynLogic"),
    ],
)
def test_a_model_that_writes_in_another_form_has_no_family(model: str) -> None:
    assert parser_for(model) is None


def test_a_family_by_name_and_variant() -> None:
    assert family_of("llama", "pythonic").name == "llama_pythonic"
    assert family_of("mistral", "v11").name == "mistral"
    with pytest.raises(LookupError, match="no variant 'x' of llama: pythonic"):
        family_of("llama", "x")
    with pytest.raises(LookupError, match="hermes"):
        family_of("hermis")
