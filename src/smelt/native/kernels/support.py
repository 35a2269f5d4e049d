"""Support functions: C functions that several kernels of a library call by name."""

from __future__ import annotations

from smelt.errors import InternalError


def keep_support(kept: dict[str, str], name: str, text: str) -> None:
    """Add the function ``name`` to those that are ``kept``.

    Raise InternalError E960 if another text has the name, because it would replace the other.
    """
    if kept.setdefault(name, text) != text:
        raise InternalError("E960", f"two support functions are called {name}")
