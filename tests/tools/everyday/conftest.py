"""The four kinds of sandbox that are tested for real."""

from tests.tools.sandboxes.conftest import place, podman, sshd

__all__ = ["place", "podman", "sshd"]
