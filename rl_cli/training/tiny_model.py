"""A language model small enough to train from nothing on a laptop's CPU: tokenizer and architecture.

The tokenizer gives each number of the environment one token, because a model of this size learns arithmetic
from number tokens within minutes and from digits not at all. Needs the `train` extra; torch and
transformers are imported when a function is called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY_SIZE = 512
PAD, EOS = "<pad>", "<eos>"
CALL, END_CALL = "<call>", "</call>"
# A message's text is the prompt as it stands; a finished assistant message ends with eos.
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
)
_WORDS = r" ?\d+| ?\p{L}+| ?[^\s\p{L}\d]+|\s+"


@dataclass(frozen=True, slots=True)
class TinyConfig:
    """Shape of the model; the defaults have about 0.4 million parameters."""

    hidden_size: int = 96
    """Width of the residual stream."""
    layers: int = 3
    """Number of transformer blocks."""
    heads: int = 3
    """Attention heads per block."""
    feed_forward: int = 288
    """Width of the feed-forward layer."""
    context: int = 256
    """Longest sequence in tokens."""
    initializer_range: float = 0.05
    """Standard deviation of the initial weights; 0.02 learns arithmetic about half as fast at this width."""
    vocabulary: int = VOCABULARY_SIZE
    """Rows of the embedding, at least the length of the tokenizer."""


def build_tokenizer(texts: Iterable[str], numbers: int = 100) -> PreTrainedTokenizerFast:
    """Trains a byte-level BPE of at most 512 entries on the texts.

    The integers 0 to `numbers` - 1, with the space before them, are one token each whether or not they
    occur; merges learnt on the rest of the texts fill the vocabulary. Any UTF-8 text is encoded without
    loss. `<call>` and `</call>` are single tokens that decoding keeps when it skips special ones.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    added = [PAD, EOS, CALL, END_CALL]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE - numbers - len(added),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator((re.sub(r" ?\d+", "", text) for text in texts), trainer)

    # A pre-token found whole in the vocabulary needs no merges to reach it, so a number costs one entry.
    state = json.loads(tokenizer.to_str())
    vocabulary = state["model"]["vocab"]
    for number in range(numbers):
        vocabulary[f"Ġ{number}"] = len(vocabulary)
    state["model"]["ignore_merges"] = True
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.add_special_tokens([PAD, EOS])
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=False) for token in (CALL, END_CALL)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )


def build_model(config: TinyConfig, seed: int) -> LlamaForCausalLM:
    """Returns a freshly initialised Llama in float32; the same seed gives the same weights.

    The global random state of torch is left as it was.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(
            LlamaConfig(
                vocab_size=config.vocabulary,
                hidden_size=config.hidden_size,
                num_hidden_layers=config.layers,
                num_attention_heads=config.heads,
                num_key_value_heads=config.heads,
                intermediate_size=config.feed_forward,
                max_position_embeddings=config.context,
                initializer_range=config.initializer_range,
                tie_word_embeddings=True,
            )
        )
