"""``--decode`` of ``smelt compile``: a decoder becomes a program with its loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli.command import note, print_json
from smelt.cli.layout import table
from smelt.cli.weights import Weights
from smelt.errors import UsageError

if TYPE_CHECKING:
    from smelt.targets.base import Artifact


@dataclass(frozen=True)
class Decoding:
    """The options; ``command`` turns each field into an option of the command line."""

    decode: Annotated[
        bool,
        typer.Option(
            "--decode",
            help="Compile a decoder with its loop and its sampling, for the target c or wasm.",
        ),
    ] = False
    context: Annotated[
        int | None,
        typer.Option(
            "--context",
            metavar="N",
            min=1,
            help="With -o: the most tokens of prompt and answer.",
        ),
    ] = None

    def is_given(self) -> bool:
        """True for a decoder; raises UsageError E637 for ``--context`` without ``--decode``."""
        if self.context is not None and not self.decode:
            raise UsageError(
                "E637",
                "--context is given without --decode",
                why="it is the number of tokens of a decoder",
                fix="add --decode",
            )
        return self.decode

    def compiled(
        self, source: str, target: str, options: Mapping[str, Any], weights: Weights
    ) -> Artifact:
        """Return the decoder of the file ``source``; raises what ``compile_decoder`` raises.

        ``--weights int4`` first stores its weights as the target ``ort`` does.
        """
        from smelt.compiler import compile_model
        from smelt.decoding.standalone.compile import compile_decoder

        stored, checkpoint = weights.stored(), weights.tracing().get("checkpoint")
        model = compile_model(source, target="ort", **stored).model if stored else source
        artifact = compile_decoder(
            model, target=target, context=self.context, weights_from=checkpoint, **options
        )
        for text in artifact.report["notes"]:
            note(text)
        return artifact

    @staticmethod
    def tell(artifact: Artifact, files: list[Path], as_json: bool) -> None:
        """Print the files and the facts of a decoder."""
        if as_json:
            paths = [str(path) for path in files]
            print_json({"schema": "smelt.compile/2", "files": paths, **artifact.report})
            return
        print(table([(path.stat().st_size, path.name) for path in files], ("bytes", "file")))
        for name, fact in artifact.plan.facts.items():
            print(f"{name.replace('_', ' ')}: {fact}")
