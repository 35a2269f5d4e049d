"""The options of a target that ``--option NAME=VALUE`` gives."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from smelt.cli.arguments import parse_options
from smelt.errors import UsageError


def target_options_of(items: list[str] | None) -> Mapping[str, Any]:
    """Return the values of ``--option`` by name.

    Raises UsageError E636 for a name such as ``verify``, which is an option of the command itself.
    """
    from smelt.compiler import compile_model

    options = parse_options(items)
    for name in inspect.signature(compile_model).parameters:
        if name in options:
            raise UsageError(
                "E636",
                f"--option {name} is not an option of a target",
                fix=f"--{name}",
                why="every target has it, so it is an option of the command",
            )
    return options
