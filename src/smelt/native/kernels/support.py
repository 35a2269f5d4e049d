"""Support functions: C functions that several kernels of a library call by name."""

from __future__ import annotations

from smelt.errors import InternalError


def keep_support(functions: dict[str, str], name: str, text: str) -> None:
    """Add the C function ``name`` to ``functions``.

    Raises InternalError E960 if ``functions`` has another text of that name.
    """
    if functions.setdefault(name, text) != text:
        raise InternalError("E960", f"two support functions are called {name}")
