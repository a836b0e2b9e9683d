"""The tiny model: a tokenizer with whole numbers that loses nothing, and reproducible weights."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.word_problems import MAX_NUMBER, tool_warm_start_rows, warm_start_rows
from rl_cli.training.tiny_model import VOCABULARY_SIZE, TinyConfig, build_model, build_tokenizer

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def rows():
    return warm_start_rows(0, 1000)


@pytest.fixture(scope="module")
def tokenizer(rows):
    return build_tokenizer(prompt + completion for prompt, completion in rows)


def ids(tokenizer, text):
    return tokenizer(text, add_special_tokens=False).input_ids


def test_the_vocabulary_is_small_and_a_solution_fits_in_twenty_tokens(tokenizer, rows):
    assert len(tokenizer) <= VOCABULARY_SIZE
    assert max(len(ids(tokenizer, completion)) + 1 for _, completion in rows) <= 20
    assert max(len(ids(tokenizer, prompt)) for prompt, _ in rows) <= 40


def test_numbers_are_one_token_each(tokenizer):
    encoded = [ids(tokenizer, f" {number}") for number in range(MAX_NUMBER + 1)]
    assert all(len(tokens) == 1 for tokens in encoded)
    assert len({tokens[0] for tokens in encoded}) == MAX_NUMBER + 1


@settings(max_examples=200, deadline=None)
@given(text=st.text())
def test_any_text_survives_encoding(tokenizer, text):
    assert tokenizer.decode(ids(tokenizer, text)) == text


def test_segments_tokenize_like_the_text_they_make_up(tokenizer):
    for segments in tool_warm_start_rows(0, 200):
        whole = ids(tokenizer, "".join(text for text, _ in segments))
        assert [token for text, _ in segments for token in ids(tokenizer, text)] == whole


def test_call_markers_are_one_token_that_decoding_keeps_and_pad_and_eos_are_special(tokenizer):
    call = ids(tokenizer, "<call> 5 * 4</call>")
    assert len(call) == 5
    assert call[-1] == tokenizer.convert_tokens_to_ids("</call>")
    text = tokenizer.decode([*call, tokenizer.eos_token_id, tokenizer.pad_token_id], skip_special_tokens=True)
    assert text == "<call> 5 * 4</call>"


def test_a_saved_tokenizer_reads_as_it_wrote(tokenizer, rows, tmp_path):
    from transformers import AutoTokenizer

    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    for prompt, completion in rows[:50]:
        assert ids(loaded, prompt + completion) == ids(tokenizer, prompt + completion)
    assert (loaded.pad_token, loaded.eos_token) == (tokenizer.pad_token, tokenizer.eos_token)


def test_the_model_has_about_400_000_parameters_fixed_by_the_seed(tokenizer):
    import torch

    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    model, same, other = (build_model(TinyConfig(), seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert 380_000 < model.num_parameters() < 430_000
    weights = [torch.cat([p.flatten() for p in m.parameters()]) for m in (model, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    tokens = torch.tensor([ids(tokenizer, "Tom has 5 pens.")])
    assert model(input_ids=tokens).logits.shape == (1, tokens.shape[1], VOCABULARY_SIZE)
