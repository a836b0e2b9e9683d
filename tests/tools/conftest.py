"""Tests of tools that ask W&B share a server."""

from tests.wandb_server.shared import kept, running, server

__all__ = ["kept", "running", "server"]
