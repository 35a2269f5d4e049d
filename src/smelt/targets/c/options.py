"""The options of the target, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from smelt.errors import UsageError
from smelt.targets.c.names import check_identifier


@dataclass(frozen=True)
class Options:
    """``name``: prefix of files, functions and macros."""

    name: str = "model"

    @staticmethod
    def of(given: Mapping[str, Any]) -> Options:
        """The options that the caller gave; raises UsageError E660."""
        known = [field.name for field in fields(Options)]
        for option, value in given.items():
            if option not in known or not isinstance(value, str):
                raise UsageError(
                    "E660",
                    f"target 'c' takes no option {option}={value!r}",
                    why=f"its options are texts: {', '.join(known)}",
                )
        options = Options(**given)
        check_identifier(options.name)
        return options
