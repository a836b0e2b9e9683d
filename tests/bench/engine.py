"""The engine against Hugging Face's generate: same model, same prompts, same samples.

`OMP_NUM_THREADS=1 python -m tests.bench.engine` prints seconds per batch (the best of several), their ratio,
and the CPU time of everything around the decode (loop, sessions, tokens to text, rewards).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

from environments.catalogue import load_environment
from environments.groups import run_groups
from environments.policies import engine
from environments.policies.base import Sampling
from environments.policies.in_process import InProcessPolicy
from environments.policies.renderers import TinyRenderer

TASKS, GROUP, NEW_TOKENS, REPEATS = 32, 8, 20, 7


def best(work: Callable[[], Any]) -> float:
    work()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    import torch

    from rl_cli.training.tiny_model import TinyConfig, build_model, build_tokenizer

    env = load_environment("gsm8k-mini")
    texts = [segment.text for row in env.warm_start(0, 2000) or [] for segment in row]
    tokenizer, model = build_tokenizer(texts), build_model(TinyConfig(), seed=0)
    renderer = TinyRenderer(tokenizer)
    tasks = list(islice(env.tasks("train", 0), TASKS))
    prompts = [tuple(renderer.first(env.prompt(task), [])) for task in tasks]
    stop = frozenset({tokenizer.eos_token_id})
    requests = [engine.Request(ids, NEW_TOKENS, stop) for ids in prompts for _ in range(GROUP)]
    width = max(map(len, prompts))
    pads = [width - len(request.ids) for request in requests]
    rows = zip(pads, requests, strict=True)
    ids = torch.tensor([[tokenizer.pad_token_id] * pad + list(request.ids) for pad, request in rows])
    mask = (torch.arange(width) >= torch.tensor(pads)[:, None]).long()
    options = {
        "max_new_tokens": NEW_TOKENS,
        "do_sample": True,
        "top_k": 0,
        "pad_token_id": tokenizer.pad_token_id,
    }

    def generate() -> Any:
        with torch.no_grad():
            return model.generate(
                input_ids=ids, attention_mask=mask, eos_token_id=tokenizer.eos_token_id, **options
            )

    ours, theirs = best(lambda: engine.decode(model, requests, tokenizer.pad_token_id)), best(generate)
    print(f"threads {torch.get_num_threads()}, {len(requests)} rollouts x {NEW_TOKENS} tokens")
    print(f"engine {ours:.3f} s, generate {theirs:.3f} s, ratio {ours / theirs:.2f}")

    policy = InProcessPolicy(engine.Engine(model, tokenizer.pad_token_id), renderer)
    overheads = []
    for _ in range(REPEATS):
        start = time.thread_time()  # of this thread: the decode runs in another
        asyncio.run(run_groups(env, tasks, policy, GROUP, Sampling(max_tokens=NEW_TOKENS)))
        overheads.append(time.thread_time() - start)
    print(f"around the decode: {1000 * min(overheads):.0f} ms of CPU for {len(requests)} rollouts")


if __name__ == "__main__":
    main()
