"""The level below the graph: flat programs over slots, and their plans; see docs/program.md.

``smelt.program.run`` computes a Program step by step. It is in a layer above, with the kernels that
it calls, and loads on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["run"]


def __getattr__(name: str) -> Any:
    if name != "run":
        raise AttributeError(f"module 'smelt.program' has no attribute {name!r}")
    return import_module("smelt.targets.host.eager").run
