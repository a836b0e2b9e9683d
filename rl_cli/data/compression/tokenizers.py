"""Counts tokens of many texts at once, on all cores: with a Hugging Face tokenizer, tiktoken, or by estimate.

Control tokens that stand in a text count as the tokenizer takes them; none are added around a text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.extras import install_command, missing_modules
from rl_cli.data.hub import quiet_hub

if TYPE_CHECKING:
    from tokenizers import Tokenizer as FastTokenizer

ESTIMATE = "estimate"
TIKTOKEN = "tiktoken:"
FAST_FILE = "tokenizer.json"
_OTHER_FILE = re.compile(r"tokenizer|vocab|merges|spiece|\.(model|tiktoken)$")
"""What transformers reads a tokenizer from; without one it is not loaded, which takes seconds."""
KINDS = "name a folder, a tokenizer.json, a model of the Hugging Face hub, tiktoken:NAME or estimate"


class Tokenizer(Protocol):
    """Says how many tokens texts are."""

    name: str
    """As it was asked for."""
    is_estimate: bool

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text. It is called from several threads."""
        ...


def open_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of this name.

    Args:
        name: A folder or a tokenizer.json, a name on the Hugging Face hub, `tiktoken:ENCODING` or
            `tiktoken:MODEL`, or `estimate`.

    Raises:
        BadUsage: There is none, or a package is missing.
        WorkFailed: It cannot be fetched.
    """
    if name == ESTIMATE:
        return Estimate()
    if name.startswith(TIKTOKEN):
        return Tiktoken(name)
    path = Path(name).expanduser()
    if path.is_file():
        return HuggingFace(name, _from_file(path))
    if path.is_dir():
        return HuggingFace(name, _from_folder(path))
    if name.count("/") > 1 or name.startswith((".", "/", "~")) or path.suffix == ".json":
        raise BadUsage(f"there is no tokenizer {name}", KINDS)
    return HuggingFace(name, _from_hub(name))


class Estimate:
    """By the number of characters. For a first look only: it may be off by a third."""

    name = ESTIMATE
    is_estimate = True

    def count(self, texts: Sequence[str]) -> list[int]:
        from environments.policies.endpoints.token_estimate import text_tokens

        return [text_tokens(text) for text in texts]


class HuggingFace:
    """A fast tokenizer of Hugging Face's."""

    is_estimate = False

    def __init__(self, name: str, tokenizer: FastTokenizer) -> None:
        self.name = name
        self._tokenizer = tokenizer
        tokenizer.no_truncation()
        tokenizer.no_padding()

    def count(self, texts: Sequence[str]) -> list[int]:
        return [
            len(found) for found in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        ]


class Tiktoken:
    """An encoding of OpenAI's, by its name or a model's."""

    is_estimate = False

    def __init__(self, name: str) -> None:
        _require("tiktoken")
        import tiktoken

        self.name, wanted = name, name.removeprefix(TIKTOKEN)
        known = tiktoken.list_encoding_names()
        try:
            found = wanted if wanted in known else tiktoken.encoding_name_for_model(wanted)
        except KeyError:
            raise BadUsage(
                f"tiktoken knows no {wanted!r}", f"known: {', '.join(known)}, and models"
            ) from None
        try:
            self._encoding = tiktoken.get_encoding(found)
        except OSError as error:  # it is fetched once, and kept
            raise WorkFailed(
                f"{name} is not on this computer and cannot be fetched",
                "fetch it once with a network, or set TIKTOKEN_CACHE_DIR to where it is",
            ) from error

    def count(self, texts: Sequence[str]) -> list[int]:
        threads = os.cpu_count() or 1
        return [len(ids) for ids in self._encoding.encode_ordinary_batch(list(texts), num_threads=threads)]


def _from_file(path: Path) -> FastTokenizer:
    _require("tokenizers")
    from tokenizers import Tokenizer as Fast

    try:
        return Fast.from_file(str(path))
    except Exception as error:  # the library raises nothing more specific
        raise BadUsage(f"{path} is no {FAST_FILE}: {error}") from error


def _from_folder(folder: Path) -> FastTokenizer:
    if (folder / FAST_FILE).is_file():
        return _from_file(folder / FAST_FILE)
    if not any(_OTHER_FILE.search(path.name) for path in folder.iterdir()):
        raise BadUsage(f"there is no {FAST_FILE} or other tokenizer in {folder}", KINDS)
    return _converted(str(folder), local=True)


def _from_hub(name: str) -> FastTokenizer:
    _require("tokenizers")
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    quiet_hub()
    with suppress(LocalEntryNotFoundError, HFValidationError):  # no network is waited for in vain
        return _from_file(Path(hf_hub_download(name, FAST_FILE, local_files_only=True)))
    try:
        return _from_file(Path(hf_hub_download(name, FAST_FILE)))
    except HFValidationError as error:
        raise BadUsage(f"there is no tokenizer {name}", KINDS) from error
    except RepositoryNotFoundError as error:
        raise BadUsage(f"the hub has no model {name}, or it wants a token (HF_TOKEN)") from error
    except (LocalEntryNotFoundError, OSError) as error:
        if isinstance(error, EntryNotFoundError) and not isinstance(error, LocalEntryNotFoundError):
            return _converted(name, local=False)
        raise WorkFailed(
            f"the tokenizer {name} is not on this computer and cannot be fetched",
            "fetch it once with a network, name a folder or a tokenizer.json, or use --tokenizer estimate",
        ) from error


def _converted(name: str, local: bool) -> FastTokenizer:
    """A tokenizer in another file format, read by transformers."""
    _require("transformers", "train")
    from transformers import AutoTokenizer

    try:
        loaded: Any = AutoTokenizer.from_pretrained(name, local_files_only=local)
        return loaded.backend_tokenizer
    except (OSError, ValueError, AttributeError, ImportError) as error:
        raise BadUsage(
            f"{name} has no tokenizer that can be read: {' '.join(str(error).split())[:200]}"
        ) from error


def _require(module: str, extra: str = "tokens") -> None:
    if module in missing_modules(extra):
        raise BadUsage(f"this needs {module}, which is not installed", install_command(extra))
