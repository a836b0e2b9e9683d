"""The errors that matter, as each API words them."""

from __future__ import annotations

from tests.wire.replies import Refusal

_KEYS = "https://platform.openai.com/account/api-keys"


def openai_bad_key(key: str = "sk-wrong*****word") -> Refusal:
    text = f"Incorrect API key provided: {key}. You can find your API key at {_KEYS}."
    return Refusal(401, text, "invalid_request_error", "invalid_api_key")


def openai_no_quota() -> Refusal:
    text = (
        "You exceeded your current quota, please check your plan and billing details. For more information on"
        " this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors."
    )
    return Refusal(429, text, "insufficient_quota", "insufficient_quota")


def openai_rate_limit(retry_after: str | None = None, **headers: str) -> Refusal:
    text = (
        "Rate limit reached for test-model in organization org-AbCdEfGhIjKlMnOpQrStUvWx on requests per min"
        " (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s."
    )
    told = {"retry-after": retry_after} if retry_after is not None else {}
    return Refusal(429, text, "requests", "rate_limit_exceeded", headers=told | _dashed(headers))


def openai_unknown_model(name: str = "nobody") -> Refusal:
    text = f"The model `{name}` does not exist or you do not have access to it."
    return Refusal(404, text, "invalid_request_error", "model_not_found")


def openai_overflow(limit: int = 8192, asked: int = 9000) -> Refusal:
    text = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {asked}"
        " tokens. Please reduce the length of the messages."
    )
    return Refusal(400, text, "invalid_request_error", "context_length_exceeded", "messages")


def openai_server_error() -> Refusal:
    text = "The server had an error while processing your request. Sorry about that!"
    return Refusal(500, text, "server_error")


def openai_overloaded() -> Refusal:
    return Refusal(503, "The engine is currently overloaded, please try again later", "server_error")


def anthropic_bad_key() -> Refusal:
    return Refusal(401, "invalid x-api-key")


def anthropic_no_credit() -> Refusal:
    text = (
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade"
        " or purchase credits."
    )
    return Refusal(400, text)


def anthropic_rate_limit(retry_after: str | None = None, **headers: str) -> Refusal:
    text = (
        "This request would exceed your organization's rate limit of 50 requests per minute. For details,"
        " refer to: https://docs.claude.com/en/api/rate-limits."
    )
    told = {"retry-after": retry_after} if retry_after is not None else {}
    return Refusal(429, text, headers=told | _dashed(headers))


def anthropic_unknown_model(name: str = "nobody") -> Refusal:
    return Refusal(404, f"model: {name}")


def anthropic_overflow(limit: int = 200_000, asked: int = 210_000) -> Refusal:
    return Refusal(400, f"prompt is too long: {asked} tokens > {limit} maximum")


def anthropic_overloaded() -> Refusal:
    return Refusal(529, "Overloaded", headers={"x-should-retry": "true"})


def anthropic_server_error() -> Refusal:
    return Refusal(500, "Internal server error")


OVERFLOWS = {
    "openai": openai_overflow(),
    "openai input": Refusal(
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "invalid_request_error",
        "context_length_exceeded",
        "input",
    ),
    "vllm": Refusal(
        400,
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the"
        " messages, 1000 in the completion). Please reduce the length of the messages or completion.",
        "BadRequestError",
        body={
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000"
            " tokens (4000 in the messages, 1000 in the completion).",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    "vllm input": Refusal(
        400,
        "The prompt (total length 5012) is too long to fit into the model (context length 4096). Make sure"
        " that `max_model_len` is no smaller than the number of text tokens.",
        "BadRequestError",
    ),
    "sglang": Refusal(
        400,
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a"
        " total of 5000 tokens: 4000 tokens from the input messages and 1000 tokens for the completion.",
        "BadRequestError",
    ),
    "sglang input": Refusal(
        400,
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        "BadRequestError",
    ),
    "llama.cpp": Refusal(
        400,
        "the request exceeds the available context size (4096 tokens), try increasing it",
        body={
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size (4096 tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 5012,
                "n_ctx": 4096,
            }
        },
    ),
    "ollama": Refusal(400, "prompt too long; exceeded max context length by 904 tokens", "api_error"),
    "openrouter": Refusal(
        400,
        "This endpoint's maximum context length is 4096 tokens. However, you requested about 5000 tokens"
        " (4000 of text input, 1000 in the output). Please reduce the length of either one, or use the"
        ' "middle-out" transform to compress your prompt automatically.',
        body={
            "error": {
                "message": "This endpoint's maximum context length is 4096 tokens. However, you requested "
                "about 5000 tokens (4000 of text input, 1000 in the output).",
                "code": 400,
                "metadata": {"provider_name": None},
            }
        },
    ),
    "a proxy's": Refusal(
        413, "Request Entity Too Large", body="<html><body>413 context_length_exceeded</body></html>"
    ),
}
"""Chat Completions' answers to a conversation that is too long, by who words it so."""


def _dashed(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
