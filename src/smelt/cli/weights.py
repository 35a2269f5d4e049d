"""The options that say where weights come from, and in which type they are stored.

::

    @command
    def convert(*, weights: Weights) -> None:
        compile_model(..., tracing=weights.tracing(), **weights.stored())
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from smelt.cli.tracing import parse_names
from smelt.errors import UsageError

STORED = ("int4", "int8", "nf4")
"""Values of ``--weights`` that name a storage type; any other value is a checkpoint."""

_TYPE = re.compile(r"(u?int|fp|float|bf|bfloat|nf)\d+")


@dataclass(frozen=True)
class Weights:
    """The options; ``command`` turns each field into an option of the command line."""

    weights: Annotated[
        list[str] | None,
        typer.Option(
            "--weights",
            metavar="CKPT|int4|int8|nf4",
            help="A checkpoint (safetensors, npz, orbax) with numbers for weights that have only a"
            " type. Or, for target ort, int4, int8 or nf4: the type to store matrix weights in.",
        ),
    ] = None
    weight_name: Annotated[
        list[str] | None,
        typer.Option(
            "--weight-name",
            metavar="WEIGHT=NAME",
            help="The NAME that a WEIGHT of the model has in the checkpoint. Repeatable.",
        ),
    ] = None
    cast_weights: Annotated[
        bool,
        typer.Option(
            "--cast-weights", help="Round the floats of the checkpoint to the model's types."
        ),
    ] = False
    extra_weights: Annotated[
        bool,
        typer.Option(
            "--extra-weights", help="Ignore entries of the checkpoint that the model does not use."
        ),
    ] = False

    def stored(self) -> dict[str, Any]:
        """Return the storage type of weights as an option of the target; raises UsageError as
        ``tracing``."""
        types, _ = self._types_and_checkpoints()
        return {"weights": types[0]} if types else {}

    def tracing(self) -> dict[str, Any]:
        """Return the checkpoint and its options for ``trace``; empty without a checkpoint.

        Raises UsageError E636 for two checkpoints or types, or text that is not WEIGHT=NAME; E637
        for checkpoint options without a checkpoint. A file whose name is a type is written
        ``./int4``.
        """
        _, checkpoints = self._types_and_checkpoints()
        names = parse_names(self.weight_name, "--weight-name")
        if isinstance(names, list):
            raise UsageError(
                "E636",
                f"--weight-name {names[0]} names no weight",
                fix="--weight-name kernel=dense.weight",
                why="it is written WEIGHT=NAME: the weight of the model, then its name in the "
                "checkpoint",
            )
        if checkpoints:
            filling = {
                "names": names,
                "cast": self.cast_weights,
                "allow_extra": self.extra_weights,
            }
            return {"checkpoint": checkpoints[0], "filling": filling}
        if names or self.cast_weights or self.extra_weights:
            raise UsageError(
                "E637",
                "an option about a checkpoint is given without a checkpoint",
                fix="add --weights CKPT",
                why="--weight-name, --cast-weights and --extra-weights say how a checkpoint is "
                "read",
            )
        return {}

    def _types_and_checkpoints(self) -> tuple[list[str], list[str]]:
        """Return the types and the checkpoints, at most one of each; raises UsageError E636."""
        types = [item for item in self.weights or () if item in STORED]
        checkpoints = [item for item in self.weights or () if item not in STORED]
        for item in checkpoints:
            if _TYPE.fullmatch(item):
                raise UsageError(
                    "E636",
                    f"--weights {item} is not a type in which weights are stored",
                    why=f"types are {', '.join(STORED)}",
                    fix=f"use one of these types, or write ./{item} if it is a checkpoint",
                )
        for values in (types, checkpoints):
            if len(values) > 1:
                raise UsageError(
                    "E636",
                    f"--weights gives {' and '.join(values)}",
                    why="a model has one checkpoint and one storage type",
                    fix="leave one of them out",
                )
        return types, checkpoints
