"""What a policy must know of a chat endpoint."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from rl_cli.core.redaction import remember
from rl_cli.core.secret_values import is_secret_name


@dataclass(frozen=True)
class Endpoint:
    """One model at one address. Immutable; `repr` shows neither the key nor the headers."""

    provider: str
    """`openai`, `anthropic`, `openrouter`, `ollama`, or a name from the config."""
    model: str
    """As the endpoint calls it."""
    base_url: str | None = None
    """None is the SDK's own default."""
    api_key: str | None = field(default=None, repr=False)
    """None where none is needed; "none" is sent then, since the SDKs send something always."""
    key_env: str | None = None
    """The environment variable that the key came from, for messages."""
    window: int | None = None
    """The model's context window in tokens, where it is known."""
    max_output_tokens: int | None = None
    """The most tokens of an answer; None leaves it to the endpoint (Anthropic, which demands one: 8192)."""
    reasoning_field: str | None = None
    """OpenAI form only: the field of an assistant message that takes its reasoning back; None sends none."""
    merge_user_messages: bool = False
    """OpenAI form only: for templates that refuse two user messages in a row."""
    stream: bool = True
    thinking: bool | int | str = False
    """Anthropic form only. False leaves it to the model; True: as long as it sees fit; "low", "medium",
    "high", "xhigh", "max": the same with an effort; a number: at most so many tokens; "disabled": never."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request."""

    def __post_init__(self) -> None:
        secret = [value for name, value in self.headers.items() if is_secret_name(name)]
        for value in [self.api_key or "", *secret]:
            remember(value)  # masked wherever a server repeats it

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"

    @property
    def key_name(self) -> str:
        """The variable to look at where the key is refused."""
        return self.key_env or f"{self.provider.upper().replace('-', '_')}_API_KEY"

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this computer, where no proxy stands in between."""
        host = urlsplit(self.base_url or "").hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:  # a name, perhaps one that begins like an address
            return host == "localhost"
