"""The modes of verification of an optimization: off, final and each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import onnx_ir as ir

from smelt.check.agreement import Dims
from smelt.check.samples import Sample
from smelt.errors import UsageError
from smelt.ir.cloning import clone_model
from smelt.passes.pipeline import Steps
from smelt.spans import span

if TYPE_CHECKING:
    from smelt.check.each import VerifyEach, VerifyFinal

Verify: TypeAlias = Literal["off", "final", "each"]


def refuse_unknown_mode(verify: str) -> None:
    """Raise UsageError E607 for a mode that does not exist."""
    if verify not in ("off", "final", "each"):
        what, why = f"verify={verify!r} is not off, final or each", "it says when to compare"
        raise UsageError("E607", what, why=why, fix="verify='final'")


def open_verifier(
    verify: Verify,
    model: ir.Model,
    steps: Steps,
    dims: Dims | None,
    samples: Sequence[Sample] | None,
) -> VerifyEach | VerifyFinal:
    """Return the observer that compares the versions of ``model`` with a copy of it."""
    with span("prepare verification"):
        from smelt.check.each import VerifyEach, VerifyFinal

        kind = VerifyEach if verify == "each" else VerifyFinal
        return kind(clone_model(model), steps, dims, samples=samples)
