"""Support functions: those that several kernels of one library call by name."""

from __future__ import annotations

from smelt.errors import InternalError


def keep_support(kept: dict[str, str], name: str, text: str) -> None:
    """Add the function ``name`` with this text to those that are ``kept``.

    Raises InternalError E960 if another text has the name: one would stand in for the other.
    """
    if kept.setdefault(name, text) != text:
        raise InternalError("E960", f"two support functions are called {name}")
