"""Runs of the tracking tests are ended after each; those of a module may share a server."""

from tests.runs.conftest import runs
from tests.wandb_server.shared import kept, running, server

__all__ = ["kept", "running", "runs", "server"]
