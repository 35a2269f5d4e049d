"""``--within`` of ``smelt compile``: weights get fewer bits as far as an error allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from smelt.cli.command import note
from smelt.cli.input_values import read_samples
from smelt.cli.source import Source
from smelt.errors import UsageError


@dataclass(frozen=True)
class Within:
    """The option; ``command`` turns the field into an option of the command line."""

    within: Annotated[
        str | None,
        typer.Option(
            metavar="ERROR",
            help="With --weights int4, int8 or nf4: the largest error of the outputs, such as 2%,"
            " measured on --inputs. Weights whose types would cost more stay in float.",
        ),
    ] = None

    def quantized(
        self,
        source: Source,
        options: dict[str, Any],
        samples: list[str] | None,
        say: Callable[[str], None],
    ) -> Source:
        """Return ``source`` with quantized weights, or as it is without ``--within``.

        The options ``weights`` and ``block`` are taken out of ``options``. Raises UsageError E637
        for a type that is not given or a function, and what ``smelt.quantize`` raises.
        """
        if self.within is None:
            return source
        kind = options.pop("weights", None)
        if kind is None or callable(source.model):
            raise UsageError(
                "E637",
                "--within is given without --weights int4, int8 or nf4"
                if kind is None
                else "--within is given for a function",
                why="it limits the error of an ONNX model whose weights get fewer bits",
                fix="add --weights int4" if kind is None else "first: smelt convert FUNCTION",
            )
        from smelt.fewer_bits import quantize

        result = quantize(
            source.model,
            read_samples(samples),
            within=self.within,
            weights=kind,
            activations="float",
            block=int(options.pop("block", 32)),
            say=say,
        )
        text = result.metric.text
        stay = f", {len(result.kept)} stay in float" if result.kept else ""
        note(f"{len(result.chosen):,} weights in {kind}{stay}; {result.note}")
        note(f"error {text(result.error)}, within {text(result.limit)} ({result.metric.name})")
        return replace(source, model=result.model)
