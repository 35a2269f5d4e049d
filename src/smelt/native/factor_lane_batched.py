"""Use lane-batched kernels for decompositions and systems of many small matrices."""

from __future__ import annotations

from smelt.native.choose import choose
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.lane_batched import DOMAIN, TAKEN, supports
from smelt.program.instruction import Program


def factor_lane_batched(program: Program) -> None:
    """Choose lane-batched kernels where they apply, in place, also in inner programs."""
    choose(program, _chosen)


def _chosen(instance: Instance) -> str | None:
    domain, _, name = instance.instruction.op.rpartition("::")
    if domain != "smelt" or name not in TAKEN or not supports(instance, name):
        return None
    return f"{DOMAIN}::{name}"
