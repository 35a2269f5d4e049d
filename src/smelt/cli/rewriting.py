"""The options of every command that runs passes over a model: which passes run, and their limits.

::

    @command
    def bisect(model: Model, *, rewriting: Rewriting) -> None:
        optimize_model(..., pipeline=rewriting.stages(), **rewriting.limits())
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from smelt.cli import completion


@dataclass(frozen=True)
class Rewriting:
    """The options; ``command`` turns each field into an option of the command line."""

    pipeline: Annotated[
        str,
        typer.Option(
            "--pipeline",
            metavar="PASS,...|@FILE",
            help="The passes and stages to run in order, or a file that lists them.",
            autocompletion=completion.pipelines,
        ),
    ] = "default"
    fast_math: Annotated[
        bool, typer.Option("--fast-math", help="Also run rewrites that lose accuracy.")
    ] = False
    assume_finite: Annotated[
        bool,
        typer.Option(
            "--assume-finite", help="Also run rewrites that assume values without NaN and infinity."
        ),
    ] = False
    opset: Annotated[
        int | None,
        typer.Option(
            "--opset",
            metavar="N",
            help="The ONNX opset of the result; models are raised or lowered to it.",
        ),
    ] = None
    ir_version: Annotated[
        int | None,
        typer.Option(
            "--ir-version",
            metavar="N",
            help="The IR version of the written file; by default that of the opset.",
        ),
    ] = None
    keep_opset: Annotated[
        bool,
        typer.Option(
            "--keep-opset",
            help="Run no pass that needs a newer opset. A model below opset 13 is raised to 13.",
        ),
    ] = False
    keep_bf16: Annotated[
        bool,
        typer.Option(
            "--keep-bf16",
            help="Keep bfloat16 where ONNX Runtime has no kernel; else it becomes float32.",
        ),
    ] = False
    functions: Annotated[
        bool,
        typer.Option(
            "--functions",
            help="Write operators beyond ONNX as model-local functions instead of in line.",
        ),
    ] = False
    consumers: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="CONSUMER,...",
            help="The programs that will read the file, such as openvino or onnxruntime>=1.18: "
            "the result has only operators and an opset that they support.",
            autocompletion=completion.consumers,
        ),
    ] = ""

    def stages(self) -> str:
        """Return the pipeline, followed by the stages that the flags add."""
        added = {"fast-math": self.fast_math, "assume-finite": self.assume_finite}
        return ",".join([self.pipeline, *(stage for stage, is_added in added.items() if is_added)])

    def limits(self) -> dict[str, Any]:
        """Return the options of ``optimize_model`` for the opset, bfloat16 and functions."""
        limit = {"highest_opset": 0} if self.keep_opset else {}
        return {
            **self._versions(),
            "keep_bfloat16": self.keep_bf16,
            "functions": self.functions,
            **limit,
        }

    def of_target(self) -> dict[str, Any]:
        """Return the keyword arguments of ``compile_model`` for the options that are given.

        Options that are not given are missing: ``keep_bfloat16`` and ``functions`` are options of
        the target ``onnx``, and other targets refuse them.
        """
        flags = {
            "keep_opset": self.keep_opset,
            "keep_bfloat16": self.keep_bf16,
            "functions": self.functions,
        }
        return {**self._versions(), **{name: True for name, is_set in flags.items() if is_set}}

    def _versions(self) -> dict[str, Any]:
        """Return the options on opset and IR version, and the consumers, which limit both."""
        consumers = {"consumers": self.consumers} if self.consumers else {}
        return {"opset": self.opset, "ir_version": self.ir_version, **consumers}
