"""The options that convert a model to float16 or bfloat16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from smelt.errors import UsageError

if TYPE_CHECKING:
    from smelt.precision.half import HalfOptions


@dataclass(frozen=True)
class HalfTypes:
    """The options; ``command`` turns each field into an option of the command line."""

    fp16: Annotated[
        bool,
        typer.Option(
            "--fp16", help="Compute in float16, except for nodes that would lose too much."
        ),
    ] = False
    bf16: Annotated[
        bool, typer.Option("--bf16", help="Compute in bfloat16, with the same exceptions.")
    ] = False
    keep: Annotated[
        str,
        typer.Option(
            "--keep",
            metavar="auto|OP,NODE,...",
            help="The nodes that stay in float32 with --fp16 or --bf16: chosen by measured ranges "
            "(auto), operators, names of nodes such as /head/*, or none.",
        ),
    ] = "auto"
    io: Annotated[
        Literal["fp32", "fp16", "bf16"],
        typer.Option("--io", help="The type of inputs and outputs with --fp16 or --bf16."),
    ] = "fp32"

    def keyword(self, *, native: bool = False) -> dict[str, Any]:
        """Return ``{"half": options}`` for the compiler, or ``{}`` without --fp16 and --bf16.

        ``native`` is --keep-bf16: keep bfloat16 where ONNX Runtime has no kernel. Raises UsageError
        E688 for options that exclude each other.
        """
        options = self._options(native)
        return {} if options is None else {"half": options}

    def _options(self, native: bool) -> HalfOptions | None:
        """Return the options of the conversion, or None if neither --fp16 nor --bf16 is given."""
        from smelt.precision.half import HalfOptions

        if self.fp16 and self.bf16:
            raise UsageError(
                "E688",
                "--fp16 and --bf16 are given together",
                why="a node computes in one type",
                fix="leave one of them out",
            )
        if not (self.fp16 or self.bf16):
            given = ["--keep"] * (self.keep != "auto") + ["--io"] * (self.io != "fp32")
            if given:
                raise UsageError(
                    "E688",
                    f"{' and '.join(given)} without --fp16 or --bf16",
                    why="they say how a model is converted to a half type",
                    fix="add --fp16",
                )
            return None
        short = "fp16" if self.fp16 else "bf16"
        if self.io not in ("fp32", short):
            raise UsageError(
                "E688",
                f"--io {self.io} is given with --{short}",
                why="inputs and outputs are of float32 or of the type of the conversion",
                fix=f"--io {short}",
            )
        return HalfOptions(
            "float16" if self.fp16 else "bfloat16",
            keep=self.keep,
            half_interface=self.io != "fp32",
            native=native,
        )
