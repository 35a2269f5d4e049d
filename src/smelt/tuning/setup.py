"""Setups: the ways to run a model that the search tries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import onnx_ir as ir

from smelt.compiler import compile_model
from smelt.passes.pipeline import Fixpoint, parse, to_text, without_steps
from smelt.runtime.session import SessionAdvice
from smelt.targets.ort import ort
from smelt.targets.ort.artifact import OrtArtifact

LEAST = "widen-half{types=bfloat16}"
"""The passes without which ONNX Runtime cannot run a source."""

SKIP_NORM = ("SkipLayerNormFusion", "EmbedLayerNormFusion")
"""Optimizers of ONNX Runtime that make SkipLayerNormalization."""


@dataclass(frozen=True)
class Setup:
    """One way to compile and run a model.

    ``pipeline`` runs without ``dropped_passes``; the target ``ort`` keeps operators as they are
    where it would make one of ``dropped_choices``. ``untouched``: no pass and no choice, the source
    itself. ``advice``: session options of ONNX Runtime.
    """

    pipeline: str = "default"
    dropped_passes: frozenset[str] = frozenset()
    dropped_choices: frozenset[str] = frozenset()
    untouched: bool = False
    advice: SessionAdvice = field(default_factory=SessionAdvice)

    def artifact(self, source: ir.Model, options: dict[str, str]) -> OrtArtifact:
        """Compile ``source`` with this setup."""
        pipeline = to_text(without_steps(parse(self.pipeline), self.dropped_passes))
        passes_of_target = f"widen-half,{pipeline},unsigned-activations"
        kept = ",".join(sorted(self.dropped_choices))  # choices that stay as written
        if self.untouched:
            pipeline, passes_of_target, kept = "", LEAST, "all"
        target_options: dict[str, Any] = {**options, "keep": kept}
        target = replace(ort, passes=passes_of_target)
        artifact = compile_model(source, target=target, pipeline=pipeline, **target_options)
        assert isinstance(artifact, OrtArtifact)
        return artifact.advised(self.advice)

    def other_graphs(self, artifact: OrtArtifact) -> Iterator[tuple[str, Setup]]:
        """Yield setups that each leave out one choice or fusion pass that fired in ``artifact``.

        Passes that only remove nodes are not tried, since they never slow a model.
        """
        for choice in {rule.partition(":")[0] for rule in artifact.report["select"]["fired"]}:
            dropped = self.dropped_choices | {choice}
            yield f"without the choice {choice}", replace(self, dropped_choices=dropped)
        fused = _steps("fuse") - _steps("simplify")
        done = {report["pass"] for report in artifact.report["passes"] if report["rewrites"]}
        for name in sorted(done & fused):
            dropped = self.dropped_passes | {name}
            yield f"without the pass {name}", replace(self, dropped_passes=dropped)

    def other_sessions(self) -> Iterator[tuple[str, Setup]]:
        """Yield setups that each change one session option."""
        advice = self.advice
        candidates = {
            "without SkipLayerNormalization": replace(advice, without=SKIP_NORM),
            "level extended": replace(advice, level="extended"),
            "level basic": replace(advice, level="basic"),
            "level disabled": replace(advice, level="disabled"),
            "without an arena": replace(advice, arena=False),
            "with memory reuse": replace(advice, memory_reuse=True),
        }
        if advice.threads != 1:
            candidates["without spinning"] = replace(advice, spinning=False)
        for name, changed in candidates.items():
            yield name, replace(self, advice=changed)


def _steps(stage: str) -> set[str]:
    """Return the texts of the passes in ``stage``, including those in a fixpoint."""
    texts: set[str] = set()
    pending = list(parse(stage))
    while pending:
        step = pending.pop()
        if isinstance(step, Fixpoint):
            pending += step.steps
        else:
            texts.add(str(step))
    return texts
