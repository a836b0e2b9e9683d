"""What is masked, what is left, and that both hold for any text."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_cli.core.redaction import MASK, forget, redact, redact_text, redacted_json, remember
from rl_cli.core.secret_values import is_secret_name
from tests.core.secrets_kit import AWKWARD, PEM, PRINTENV, TOKEN, VALUES, WRAPPED, texts

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(autouse=True)
def known_secrets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in VALUES.items():
        monkeypatch.setenv(name, value)
    forget()
    yield
    forget()


LOOKS = {
    "an OpenAI key: sk-proj-Ab12Cd34Ef56Gh78": "sk-proj-Ab12Cd34Ef56Gh78",
    "key-like sk-test-12345678": "sk-test-12345678",
    "Incorrect API key provided: sk-abcd1234************wxyz.": "sk-abcd1234************wxyz",
    "sk-ant-api03-abcdefABCDEF1234_-x": "sk-ant-api03-abcdefABCDEF1234_-x",
    "login with hf_AbCdEfGhIjKlMnOpQrStUvWx1": "hf_AbCdEfGhIjKlMnOpQrStUvWx1",
    "ghp_" + "a1B2" * 9: "ghp_" + "a1B2" * 9,
    "xoxb-123456789012-abcdefghij": "xoxb-123456789012-abcdefghij",
    "AKIAIOSFODNN7EXAMPLE": "AKIAIOSFODNN7EXAMPLE",
    "AIza" + "Sy1_-" * 7: "AIza" + "Sy1_-" * 7,
    "glpat-abcdef1234567890XY": "glpat-abcdef1234567890XY",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl": "eyJzdWIiOiIxIn0",
    "Authorization: Basic dXNlcjpwYXNzd29yZA==": "dXNlcjpwYXNzd29yZA",
    "{'authorization': 'Bearer abcdef123456'}": "abcdef123456",
    'curl -H "x-api-key: 0123abcd4567"': "0123abcd4567",
    "Bearer abcdef.12345": "abcdef.12345",
    "WANDB_API_KEY=" + "0123456789abcdef" * 2 + "01234567": "0123456789abcdef",
    "machine api.wandb.ai\n  login user\n  password 0a1b2c3d": "0a1b2c3d",
    "DB_PASSWORD=hunter22": "hunter22",
    'password = "correcthorse"': "correcthorse",
    '{\\"client_secret\\": \\"qwertyuiop\\"}': "qwertyuiop",
    "?access_token=a1b2c3d4e5f6a7b8&x=1": "a1b2c3d4e5f6a7b8",
    "postgres://me:s3cr3t@db.example.org/x": "s3cr3t",
    "https://me:p@ss@example.org/": "p@ss",
    "password=hunter22https://me:pw12@host/x[redacted]": "hunter22",
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIE\n-----END RSA PRIVATE KEY-----": "MIIE",
    "-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----": "MIIE",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nthe rest was cut": "b3BlbnNzaC1rZXk",
    "in organization org-ABCDEF123 on requests per min": "org-ABCDEF123",
    "project proj_abcD1234efgh": "proj_abcD1234efgh",
    "\\nsk-ant-abcdefgh1234": "sk-ant-abcdefgh1234",
    "\x1b[32msk-ant-abcdefgh1234": "sk-ant-abcdefgh1234",
}


@pytest.mark.parametrize("text", LOOKS)
def test_what_looks_like_a_secret_is_masked(text: str) -> None:
    masked = redact_text(text)
    assert LOOKS[text] not in masked
    assert MASK in masked
    assert redact_text(masked) == masked


HARMLESS = [
    "A risk-averse task-oriented disk-space estimate; sk-learn and sk-learn-contrib are packages.",
    "commit d41d8cd98f00b204e9800998ecf8427e01234567, sha256 " + "0123456789abcdef" * 4,
    "run 20260101-123456-gsm8k_mini-2 of session 3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "mark 9f86d081884c7d65, pid 4242, boot 123e4567-e89b-12d3-a456-426614174000",
    "completions/mean_tokens 128.5, max_tokens: 4096, tokens: 12345678901234567890",
    '{"eos_token": "<|im_end|>", "token": " hello", "max_tokens": 16, "password": 12345678}',
    "tokenizer(text, token=token, password=password) and api_key=os.environ['X'] or api_key=get_key2(x)",
    "def connect(password: str, api_key: str | None = None) -> None: ...",
    "Set OPENAI_API_KEY, or key_env: OPENAI_API_KEY in the config.",
    "api_key: $OPENAI_API_KEY, token: ${TOKEN}, secret: <your secret>, password: ********",
    "The password: it is required. A secret: nobody knows. Bearer authentication; bearer of bad news.",
    "http://localhost:8000/v1 and https://example.org/a:b@c/d, time 12:30:45, user@example.org",
    "org-mode, org-level, proj_weights, q_proj_layer, hf_hub_download_everything_at_once",
    "/usr/lib/python3/dist-packages/transformers/models/auto/tokenization_auto.py",
    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
    "x = a[key]; monkey, keyboard, author: someone; authorship",
    "答案是 42。 Übergröße, İstanbul.",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_stays(text: str) -> None:
    assert redact_text(text) == text


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz .,:;!?()'\"\n-", max_size=300))
def test_prose_stays(text: str) -> None:
    assert MASK not in redact_text(text) or any(c in text for c in ":\"'")


@given(
    st.uuids() | st.binary(min_size=20, max_size=20).map(bytes.hex) | st.binary(min_size=32).map(bytes.hex)
)
def test_ids_and_hashes_stay(mark: Any) -> None:
    for text in (str(mark), f"commit {mark}", json.dumps({"id": str(mark), "sha256": str(mark)})):
        assert redact_text(text) == text
    assert redact({"mark": str(mark), "key": str(mark)}) == {"mark": str(mark), "key": str(mark)}


@pytest.mark.parametrize("value", VALUES.values())
def test_sec_02_values_of_secret_variables_are_masked_in_every_form(value: str) -> None:
    forms = {
        "raw": f"a{value}b",
        "JSON": json.dumps({"x": value}),
        "JSON in JSON": json.dumps({"x": json.dumps({"y": f"<{value}>"})}),
        "percent": f"?x={quote(value, safe='')}&y={quote(value)}&z={quote_plus(value)}",
        "percent, lower case": re.sub("%..", lambda found: found[0].lower(), quote(value, safe="")),
        "Python": repr([value]),
        "HTML": html.escape(value),
        "shell": f"export X={shlex.quote(value)}",
    }
    for how, text in forms.items():
        masked = redact_text(text)
        assert MASK in masked, how
        assert not any(value[i : i + 6] in masked for i in range(len(value) - 5)), how


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("value", VALUES.values())
def test_sec_02_base64_of_a_value_is_masked_wherever_it_begins(value: str, before: int) -> None:
    data = ("x" * before + value + "yy").encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        masked = redact_text(f"data: {encode(data).decode()}")
        assert MASK in masked
        assert len(masked) < 40


def test_sec_02_printenv_in_base64_is_masked() -> None:
    for text in (WRAPPED, WRAPPED.replace("\n", "\\n"), base64.b64encode(PRINTENV.encode()).decode()):
        masked = redact_text(text)
        left = "".join(c if c.isalnum() or c in "+/=" else " " for c in masked.replace("\\n", ""))
        for part in left.replace("redacted", " ").split():
            decoded = base64.b64decode(part[: len(part) // 4 * 4], validate=False)
            assert not any(value.encode()[2:-2] in decoded for value in VALUES.values())
        assert masked.count(MASK) >= len(VALUES)


def test_masking_never_breaks_json_text() -> None:
    text = json.dumps({"a": f"\n{TOKEN}\\", "b": [AWKWARD, PEM + "\\"], "c": "\u0001" + TOKEN})
    again = json.loads(redact_text(text))
    assert again["a"].endswith(f"{MASK}\\")
    assert MASK in again["b"][0]
    assert MASK in again["b"][1]


@given(texts)
def test_masking_twice_changes_nothing(text: str) -> None:
    masked = redact_text(text)
    assert redact_text(masked) == masked
    assert not any(value in masked for value in VALUES.values())


@given(values)
def test_json_is_valid_and_of_the_same_shape(value: Any) -> None:
    written = redacted_json(value)
    again = json.loads(written)
    assert _shape(again) == _shape(json.loads(json.dumps(value)))
    assert redact(again) == again


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [_shape(inner) for inner in value.values()]
    return [_shape(inner) for inner in value] if isinstance(value, list) else type(value)


def test_structures_without_secrets_come_back_as_they_are() -> None:
    row = {"step": 3, "loss": 0.5, "notes": ["fine", ("a", None)], "phase": "grpo"}
    assert redact(row) is row
    assert redact({TOKEN: [1, (TOKEN, 2)]}) == {MASK: [1, (MASK, 2)]}
    assert redact({"api_key": "qwertyuiop", "eos_token": "</s>"}) == {"api_key": MASK, "eos_token": "</s>"}
    assert len(redact({TOKEN: 1, f"{TOKEN}{AWKWARD}": 2, AWKWARD: 3})) == 3


def test_names_of_variables_that_hold_secrets() -> None:
    for name in (
        "OPENAI_API_KEY",
        "HF_TOKEN",
        "PGPASSWORD",
        "MYSQL_PWD",
        "acme_secret",
        "GH_PAT",
        "MYAPIKEY",
    ):
        assert is_secret_name(name), name
    for name in ("TOKENIZERS_PARALLELISM", "PWD", "OLDPWD", "KEYBOARD", "MONKEY", "GIT_AUTHOR_NAME", "PATH"):
        assert not is_secret_name(name), name


def test_settings_and_common_words_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {
        "SSH_AUTH_SOCK": "/tmp/ssh-XYZ/agent.1234",
        "MAX_TOKENS": "1234567890",
        "USE_AUTH": "disabled",
        "SHORT_KEY": "abc123",
        "WORD_KEY": "finished",
        "SORT_KEY": "total_steps",
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key.json",
    }
    for name, value in plain.items():
        monkeypatch.setenv(name, value)
    forget()
    text = "finished at total_steps 1234567890; disabled; abc123; /tmp/ssh-XYZ/agent.1234; /home/me/key.json"
    assert redact_text(text) == text
    assert redact_text("SHORT_KEY=abc123 WORD_KEY=finished SSH_AUTH_SOCK=/tmp/ssh-XYZ/agent.1234") == (
        f"{MASK} {MASK} SSH_AUTH_SOCK=/tmp/ssh-XYZ/agent.1234"
    )


@pytest.mark.parametrize(
    "value",
    [
        "/x9Qm3kT7vLp2wRz",
        "/Zm9v/YmFyYmF6/cXV4cXV1eA",
        "~hunter22-and-more",
        "/hunter22",
        "./s3cr3tP4ss",
        "C:\\x9Qm3kT7vLp2wRz",
        "123456789012",
        "98765432109876543210",
        "my-redacted-password-1",
        "redacted42!",
    ],
)
def test_values_that_look_like_settings_are_masked_too(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_PASSWORD", value)
    forget()
    masked = redact_text(f"it is {value}, they say")
    assert masked == f"it is {MASK}, they say"
    assert redact_text(masked) == masked


@pytest.mark.parametrize(
    "value",
    [
        "/etc/ssl/private/server.key",
        "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "/home/jdoe42/.ssh/id_ed25519",
        "~/keys/acme-2.pem",
        "../config/secret_key.txt",
        "C:\\Users\\Me\\key.json",
        "12345678901",
        "2026-11-29 19:17:36",
        "[redacted]",
    ],
)
def test_paths_and_short_numbers_are_no_secrets(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_TOKEN", value)
    forget()
    assert redact_text(f"it is {value}, they say") == f"it is {value}, they say"


def test_a_path_that_exists_is_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x9Qm3kT7vLp2wRz"
    monkeypatch.setenv("ACME_TOKEN", str(file))
    forget()
    assert redact_text(f"see {file}") == f"see {MASK}"
    file.touch()
    forget()
    assert redact_text(f"see {file}") == f"see {file}"


def test_a_password_in_an_address_of_the_environment_is_masked_alone_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://me:pw-9-letters@db/x")
    forget()
    assert redact_text("tried pw-9-letters") == f"tried {MASK}"


def test_a_value_can_be_told() -> None:
    remember("letmein-77-x")
    remember("short")
    assert redact_text("letmein-77-x short") == f"{MASK} short"


@pytest.mark.parametrize(
    "piece", ["token=", "sk-", "eyJ-", "://a:", "-----BEGIN PRIVATE KEY-----", "authorization: ", "A", "\\"]
)
def test_the_cost_grows_with_the_length_only(piece: str) -> None:
    def seconds(length: int) -> float:
        text = (piece * length)[:length]
        times = []
        for _ in range(3):
            began = time.process_time()
            redact_text(text)
            times.append(time.process_time() - began)
        return min(times)

    assert seconds(640_000) < 40 * max(seconds(40_000), 0.001)  # 16 times the length; its square is 256
