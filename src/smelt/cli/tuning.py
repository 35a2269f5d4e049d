"""The options of ``--tune``: time several ways to run a model and keep the fastest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli.arguments import bind_dims
from smelt.errors import UsageError

if TYPE_CHECKING:
    from smelt.targets.base import Artifact


@dataclass(frozen=True)
class Tuning:
    """The seconds to spend, the number of threads, and the sizes of symbolic dims while timing."""

    tune: Annotated[
        float | None,
        typer.Option(
            "--tune",
            metavar="SECONDS",
            min=0.0,
            help="Spend SECONDS on timing variants on this machine and keep the fastest. For"
            " target ort.",
        ),
    ] = None
    tune_dim: Annotated[
        list[str] | None,
        typer.Option(
            "--tune-dim",
            metavar="NAME=SIZE",
            help="The size of a symbolic dim while --tune measures; 1 by default. Repeatable.",
        ),
    ] = None
    threads: Annotated[
        int, typer.Option(min=1, metavar="N", help="The threads that --tune runs the model with.")
    ] = 1

    def compile(
        self,
        say: Callable[[str], None],
        source: Any,
        *specs: Any,
        target: str,
        pipeline: str,
        verify: str,
        dims: Mapping[str, int | tuple[int, int]] | None,
        opset: int | None,
        x64: bool | None,
        tracing: Mapping[str, Any] | None,
        observers: object,
        fallback: str | None,
        strict: bool,
        **options: Any,
    ) -> Artifact:
        """Compile as ``compile_model`` does, and keep the fastest of several timed variants.

        ``observers`` are ignored, because many compiles run. Raises UsageError E637 for a target
        other than ``ort``.
        """
        from smelt.compiler import source_model
        from smelt.tuning import tune_model

        assert self.tune is not None
        if target != "ort" or fallback is not None:
            raise UsageError(
                "E637",
                "--tune is given for a target other than ort, or with --fallback",
                fix="--target ort, without --fallback",
                why="it times sessions of ONNX Runtime",
            )
        if verify != "off":
            raise UsageError(
                "E637",
                "--tune and --verify each are given together",
                why="--tune compiles the model many times",
                fix="--verify final compares the fastest with the source",
            )
        tracing = {"x64": x64, "strict": strict, **(tracing or {})}
        model = source_model(source, specs, opset, tracing)
        return tune_model(
            model,
            seconds=self.tune,
            sizes=bind_dims(self.tune_dim),
            dims=dims,
            threads=self.threads,
            pipeline=pipeline,
            options=options,
            say=say,
        )
