"""Support functions: C functions that several kernels of a library call by name."""

from __future__ import annotations

from smelt.errors import InternalError


def keep_support(kept: dict[str, str], name: str, text: str) -> None:
    """Add the C function ``name`` to ``kept``.

    Raises InternalError E960 if ``kept`` has another text of that name.
    """
    if kept.setdefault(name, text) != text:
        raise InternalError("E960", f"two support functions are called {name}")
