"""Models and tokenizers for training and evaluation, and the policy that samples from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl_cli.config.tree import LoraSection, ModelSection
from rl_cli.core.errors import WorkFailed

if TYPE_CHECKING:
    from environments.policies.base import Policy
    from environments.policies.engine import Engine


@dataclass
class Loaded:
    """A model with its tokenizer."""

    model: Any
    tokenizer: Any
    tiny: bool
    """Built here: prompts are plain text. Else they go through the tokenizer's chat template."""
    name: str = ""
    """Of the model that it is, or was trained from; empty where nothing depends on it."""


def device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _no_progress_bars() -> None:
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()


def load_tiny(folder: Path) -> Loaded:
    """Loads a tiny model that was saved here."""
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

    _no_progress_bars()
    model = LlamaForCausalLM.from_pretrained(folder, local_files_only=True)
    return Loaded(model, PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True), tiny=True)


def load_pretrained(section: ModelSection, train: bool = True) -> Loaded:
    """Loads a Hugging Face model by name or folder, with a fresh LoRA adapter if the config asks for one.

    Weights that are trained stay in float32 and are computed with in `dtype`: an update of a bfloat16
    weight at the usual learning rates is rounded away. Frozen weights are held in `dtype`.

    Raises:
        WorkFailed: The model cannot be had, or its tokenizer has no chat template.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    _no_progress_bars()
    frozen = section.lora is not None or not train
    dtype = getattr(torch, section.dtype) if frozen else torch.float32
    try:
        tokenizer = AutoTokenizer.from_pretrained(section.name, padding_side="left")
        model: Any = AutoModelForCausalLM.from_pretrained(section.name, dtype=dtype)
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise WorkFailed(
            f"cannot load the model {section.name}: {first}", "is the name right, and is there a network?"
        ) from error
    if not tokenizer.chat_template:
        raise WorkFailed(
            f"the tokenizer of {section.name} has no chat template", "use an instruction-tuned model"
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    if section.lora and train:
        model = add_lora(model, section.lora)
    model.to(device())
    return Loaded(model, tokenizer, tiny=False, name=section.name)


def load_checkpoint(folder: Path, section: ModelSection) -> Loaded:
    """Loads a checkpoint for inference: a tiny or a whole model's, or an adapter's on the section's model.

    Raises:
        WorkFailed: The folder holds no model.
    """
    from transformers import AutoTokenizer

    from rl_cli.training.tiny_model import CHAT_TEMPLATE

    if (folder / "adapter_config.json").exists():
        from peft import PeftModel

        loaded = load_pretrained(section, train=False)
        return replace(loaded, model=PeftModel.from_pretrained(loaded.model, folder))
    try:
        template = AutoTokenizer.from_pretrained(folder).chat_template
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise WorkFailed(f"{folder} holds no model: {first}") from error
    if template == CHAT_TEMPLATE:
        return load_tiny(folder)
    loaded = load_pretrained(section.model_copy(update={"name": str(folder), "lora": None}), train=False)
    return replace(loaded, name=section.name)


def add_lora(model: Any, section: LoraSection) -> Any:
    """Freezes the model and adds an adapter to every linear layer but the head."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=section.rank,
        lora_alpha=section.alpha,
        lora_dropout=section.dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config)


def load_weights(loaded: Loaded, checkpoint: Path) -> None:
    """Puts a checkpoint's weights (all of them, or the adapter's) into the model in place."""
    from safetensors.torch import load_file

    adapter = checkpoint / "adapter_model.safetensors"
    if adapter.exists():
        from peft import set_peft_model_state_dict

        set_peft_model_state_dict(loaded.model, load_file(adapter))
        return
    index = checkpoint / "model.safetensors.index.json"
    files = (
        sorted(checkpoint.glob("model-*.safetensors"))
        if index.exists()
        else [checkpoint / "model.safetensors"]
    )
    for file in files:
        loaded.model.load_state_dict(load_file(file), strict=False)  # tied weights are saved once


def all_finite(model: Any) -> bool:
    """Whether every weight that is trained is a number: one bad update spoils a model for good."""
    import torch

    return all(bool(torch.isfinite(p).all()) for p in model.parameters() if p.requires_grad)


def make_policy(loaded: Loaded, name: str, engine: Engine | None = None) -> Policy:
    """The policy that samples from the model as it is at each moment, so also while it is being trained.

    Args:
        engine: What continues token sequences; None decodes with the model itself.
    """
    from environments.policies.engine import Engine
    from environments.policies.in_process import InProcessPolicy
    from environments.policies.model_family import family_for
    from environments.policies.renderers import ChatTemplateRenderer, Renderer, TinyRenderer

    if loaded.tiny:
        renderer: Renderer = TinyRenderer(loaded.tokenizer)
    else:
        family = family_for(loaded.name, str(loaded.tokenizer.chat_template))
        renderer = ChatTemplateRenderer(loaded.tokenizer, family)
    engine = engine or Engine(loaded.model, loaded.tokenizer.pad_token_id)
    return InProcessPolicy(engine, renderer, name)
