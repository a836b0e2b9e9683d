"""An environment with secrets of every awkward kind, and texts made of them."""

from __future__ import annotations

import base64

from hypothesis import strategies as st

KEY = "sk-test-AAAABBBBCCCCDDDD"
TOKEN = "zq81-77ab-very-secret"
AWKWARD = "p\"a\\ss'w&rd /x%"
PEM = "-----BEGIN THING-----\nabcdEFGHijklmnop1234\nZZZZefghijklmnop99\n-----END THING-----"
VALUES = {"OPENAI_API_KEY": KEY, "ACME_TOKEN": TOKEN, "DB_PASSWORD": AWKWARD, "CLIENT_SECRET": PEM}
PRINTENV = "\n".join(["HOME=/root", *(f"{k}={v}" for k, v in VALUES.items()), "LANG=C.UTF-8", ""])
WRAPPED = base64.encodebytes(PRINTENV.encode()).decode()

PIECES = [
    *VALUES.values(),
    WRAPPED,
    WRAPPED.replace("\n", "\\n"),
    "sk-ant-abcdefgh12345678",
    "hf_" + "a1" * 12,
    "Authorization: ",
    "Basic dXNlcjpwYXNz",
    "Bearer abc123def456",
    "password=hunter22",
    '"password": "hunter22"',
    "https://user:pw12@host/x",
    "-----BEGIN RSA PRIVATE KEY-----",
    "MIIabc+/=",
    "-----END RSA PRIVATE KEY-----",
    "org-ABCDEF123",
    "token=",
    "[redacted]",
    "sk-",
    "s",
    "\\",
    '"',
    "\n",
    "\\n",
    " ",
    "=",
    "the loss is 0.5",
    "\u0130é",
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=8).map("".join)
