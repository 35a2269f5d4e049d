"""Let LAPACK compute the decompositions of the domain ``smelt``, where this process has it."""

from __future__ import annotations

from smelt.native.choose import choose
from smelt.native.kernels.eigh_side_by_side import EIGH
from smelt.native.kernels.eigh_side_by_side import takes as takes_many
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.lapack import DOMAIN, NAMES, takes
from smelt.program.instruction import Program


def call_lapack(program: Program) -> None:
    """Turn such instructions into calls, in place, and those of bodies."""
    choose(program, _called)


def _called(instance: Instance) -> str | None:
    domain, _, name = instance.instruction.op.rpartition("::")
    if domain == "smelt" and name == "Eigh" and takes_many(instance):
        return EIGH
    if domain != "smelt" or name not in NAMES or not takes(instance, name):
        return None
    return f"{DOMAIN}::{name}"
