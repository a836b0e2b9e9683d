"""Rollouts by vLLM, colocated with the trainer on one GPU: same sessions and renderers, another decoder.

TRL makes the vLLM engine and pushes the present weights into it before each step's rollouts; it records
logprobs of the full distribution after the temperature (`processed_logprobs`), as ours are. Evaluation does
not use it: its weights are those of the last step's start.

Not covered by the tests here: vLLM needs a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from environments.policies.base import FinishReason
from environments.policies.engine import Engine, Request, Sampled


class VllmEngine(Engine):
    """An Engine whose batches vLLM continues.

    Args:
        llm: The `vllm.LLM` that a GRPOTrainer made (`trainer.vllm_generation.llm`).
        model: The model in training; only its limits are read.
        pad_id: Not used by vLLM.
    """

    def __init__(self, llm: Any, model: Any, pad_id: int) -> None:
        super().__init__(model, pad_id)
        self.llm = llm

    def continue_all(self, requests: Sequence[Request]) -> list[Sampled]:
        from vllm import SamplingParams

        prompts = [{"prompt_token_ids": list(request.ids)} for request in requests]
        settings = [
            SamplingParams(
                temperature=request.temperature,
                max_tokens=request.max_new_tokens,
                stop_token_ids=sorted(request.stop_ids),
                logprobs=0,
                detokenize=False,
            )
            for request in requests
        ]
        outputs = self.llm.generate(prompts, sampling_params=settings, use_tqdm=False)
        return [
            _sampled(output.outputs[0], request) for output, request in zip(outputs, requests, strict=True)
        ]


def _sampled(output: Any, request: Request) -> Sampled:
    ids = list(output.token_ids)
    logprobs = [position[token].logprob for token, position in zip(ids, output.logprobs, strict=True)]
    stopped = bool(ids) and ids[-1] in request.stop_ids
    return Sampled(ids, logprobs, FinishReason.STOP if stopped else FinishReason.LENGTH)
