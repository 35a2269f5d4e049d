"""Use lane-batched kernels for decompositions and systems of many small matrices."""

from __future__ import annotations

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.lane_batched import DOMAIN, TAKEN, supports
from smelt.native.rewrite.choose import choose
from smelt.program.instruction import Program


def factor_lane_batched(program: Program) -> None:
    """Replace decompositions and systems by their lane-batched operators, in place, bodies
    included.
    """
    choose(program, _lane_batched_operator)


def _lane_batched_operator(instance: Instance) -> str | None:
    """Return the name of the lane-batched operator for ``instance``, or None."""
    domain, _, name = instance.instruction.op.rpartition("::")
    if domain != "smelt" or name not in TAKEN or not supports(instance, name):
        return None
    return f"{DOMAIN}::{name}"
