"""Which model answers at an address, where nobody says its name: the only one that the server lists."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rl_cli.core.cuts import one_line
from rl_cli.core.errors import BadUsage
from rl_cli.core.printable import printable
from rl_cli.core.settings_schema import check_address

if TYPE_CHECKING:
    from rl_cli.agent.models import Choice

SECONDS = 3.0
MOST_BYTES = 1_000_000
SHOWN = 8
"""Names in an error."""


def model_at(address: str, default: Choice) -> str:
    """`provider/name` of the model at `address`.

    Args:
        address: Where a server of OpenAI's form is.
        default: Who answers where no address is given. A server that does not say what it has is asked for
            this model, unless it is part of rl-cli.

    Raises:
        BadUsage: The server cannot be asked, or has none or several.
    """
    check_address("--base-url", address, "flag")
    place, known = urlsplit(address).netloc.rpartition("@")[2], not default.name.startswith("builtin/")
    name_it = f"--model openai/NAME --base-url {address}"
    try:
        names = _listed(address)
    except (OSError, ValueError) as error:
        if known:
            return default.name
        why = getattr(error, "reason", None) or error
        silent = f"{place} does not say which models it has: {one_line(printable(str(why)), 200)}"
        raise BadUsage(silent, name_it) from error
    if known and default.name.partition("/")[2] in names:
        return default.name
    if len(names) == 1:
        return f"openai/{names[0]}"
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    has = f"has {len(names)} models: {', '.join(names[:SHOWN])}{more}" if names else "lists no models"
    raise BadUsage(f"{place} {has}", f"choose one: {name_it}")


def _listed(address: str) -> list[str]:
    """The ids that `address`/models lists."""
    import urllib.request

    from environments.policies.endpoints.endpoint import Endpoint

    class NoRedirect(urllib.request.HTTPRedirectHandler):  # it would take the key along
        def redirect_request(self, *args: Any) -> None:
            return None

    request = urllib.request.Request(f"{address.rstrip('/')}/models")
    if key := os.environ.get("OPENAI_API_KEY", "").strip():
        request.add_header("Authorization", f"Bearer {key}")
    local = [urllib.request.ProxyHandler({})] if Endpoint("", "", address).is_loopback else []
    with urllib.request.build_opener(NoRedirect, *local).open(request, timeout=SECONDS) as answer:
        body = json.loads(answer.read(MOST_BYTES))
    rows = body.get("data") if isinstance(body, dict) else None
    if not isinstance(rows, list):
        raise ValueError("its answer is no list of models")
    ids = [row.get("id") for row in rows if isinstance(row, dict)]
    return list(dict.fromkeys(printable(name) for name in ids if isinstance(name, str) and name))
