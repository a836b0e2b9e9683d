"""Hears a stop where a training process hears it: in the answer to a sign of life."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from urllib.parse import quote

from rl_cli.tracking.faults import Fault

SECONDS = 8.0


def stopped_by_file_stream(base_url: str, api_key: str | None, path: str) -> bool:
    """Whether W&B answers that the run is to stop.

    Sends what a session sends when it has nothing to log, so the run must be one that goes on here.

    Args:
        base_url: The server.
        api_key: The key.
        path: entity/project/run.

    Raises:
        Fault: `refused`, if the server does not take it.
        OSError: It cannot be reached, or does not answer in time.
    """
    names = "/".join(quote(name, safe="") for name in path.split("/", 2))
    basic = base64.b64encode(f"api:{api_key or ''}".encode()).decode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {basic}"}
    url = f"{base_url.rstrip('/')}/files/{names}/file_stream"
    request = urllib.request.Request(url, json.dumps({"files": {}}).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            told = json.loads(answer.read())
    except urllib.error.HTTPError as error:
        if error.code >= 500 or error.code == 429:
            raise OSError(f"error {error.code}") from None
        raise Fault("refused", f"W&B does not tell whether stop was pressed ({error.code})") from None
    except ValueError:
        raise Fault("bad_answer", "W&B's answer to a sign of life cannot be read") from None
    return bool(isinstance(told, dict) and told.get("stopped"))
