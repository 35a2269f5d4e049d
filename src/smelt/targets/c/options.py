"""The options of the target."""

from __future__ import annotations

from dataclasses import dataclass

from smelt.native.names import check_identifier


@dataclass(frozen=True)
class Options:
    """``name``: prefix of files, functions and macros; raises UsageError E660 if it cannot be."""

    name: str = "model"

    def __post_init__(self) -> None:
        check_identifier(self.name)
