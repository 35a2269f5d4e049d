"""The options ``--tune`` and ``--native-regions``: keep what is fastest on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from smelt.cli.arguments import bind_dims
from smelt.errors import UsageError

if TYPE_CHECKING:
    from smelt.targets.base import Artifact

Compile: TypeAlias = "Callable[..., Artifact]"


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
    native_regions: Annotated[
        bool,
        typer.Option(
            "--native-regions",
            help="Compile parts of the model to a library of C that ONNX Runtime calls, and keep it"
            " if the model then runs faster on this machine. For target ort; open sizes need"
            " bounds, as --dim batch=1..8.",
        ),
    ] = False
    threads: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="The threads that --tune and --native-regions run the model with.",
        ),
    ] = 1

    def compiler(self, say: Callable[[str], None], target: str, fallback: str | None) -> Compile:
        """Return the function that compiles: ``compile_model``, or one that also measures.

        Raises UsageError E637 for options that exclude each other.
        """
        from smelt.compiler import compile_model

        if self.tune is None and not self.native_regions:
            return compile_model
        if target != "ort" or fallback is not None:
            option = "--native-regions" if self.native_regions else "--tune"
            raise UsageError(
                "E637",
                f"{option} is given for a target other than ort, or with --fallback",
                fix="--target ort, without --fallback",
                why="it times sessions of ONNX Runtime",
            )
        if not self.native_regions:
            return partial(self._tuned, say)
        if self.tune is not None:
            raise UsageError(
                "E637",
                "--tune and --native-regions are given together",
                fix="leave one of them out",
                why="--tune chooses among models without native regions",
            )
        return self._with_regions

    def _with_regions(
        self,
        source: Any,
        *specs: Any,
        target: str,
        fallback: str | None,
        x64: bool | None,
        tracing: Mapping[str, Any] | None,
        strict: bool,
        **options: Any,
    ) -> Artifact:
        """Return the artifact for target ``ort`` with native regions.

        The parameters are those of ``compile_model``, which this method replaces. ``target`` and
        ``fallback`` are not passed on, because ``compiler`` has checked them.
        """
        from smelt.native_regions.compile import compile_with_regions

        tracing = {"x64": x64, "strict": strict, **(tracing or {})}
        return compile_with_regions(
            source, *specs, tracing=tracing, threads=self.threads, **options
        )

    def _tuned(
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
        """Return the fastest of several compiled variants, timed for ``--tune`` seconds.

        The parameters are those of ``compile_model``, which this method replaces. ``observers`` are
        ignored, because many compiles run. Raises UsageError E637 with ``--verify each``.
        """
        from smelt.compiler import source_model
        from smelt.tuning import tune_model

        assert self.tune is not None
        if verify != "off":
            raise UsageError(
                "E637",
                "--tune cannot be combined with `--verify each`",
                why="--tune compiles the model many times",
                fix="--verify final, which compares the fastest variant with the source",
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
