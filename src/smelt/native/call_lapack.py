"""Use LAPACK for decompositions of the domain ``smelt``, if this process has it."""

from __future__ import annotations

from smelt.native.choose import choose
from smelt.native.kernels import (
    complex_lapack,
    eigh_side_by_side,
    general_lapack,
    small_complex_qr,
    svd_side_by_side,
)
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.lapack import DOMAIN, NAMES, takes
from smelt.program.instruction import Program

MANY = {
    "Eigh": (eigh_side_by_side.takes, eigh_side_by_side.EIGH),
    "ComplexEigh": (eigh_side_by_side.takes_parts, eigh_side_by_side.COMPLEX_EIGH),
    "ComplexQR": (small_complex_qr.takes, small_complex_qr.NAME),
    "SVD": (svd_side_by_side.takes, svd_side_by_side.SVD),
    "SingularValues": (svd_side_by_side.takes, svd_side_by_side.SINGULAR_VALUES),
}
"""Kernels of small matrices: lane-batched, with LAPACK for the last steps or alone."""


def call_lapack(program: Program) -> None:
    """Turn decompositions into kernels that call LAPACK, in place, bodies included."""
    choose(program, _called)


def _called(instance: Instance) -> str | None:
    """Return the operator that computes ``instance`` with LAPACK, or None."""
    domain, _, name = instance.instruction.op.rpartition("::")
    if domain == "smelt" and name in MANY and MANY[name][0](instance):
        return MANY[name][1]
    if domain == "smelt" and name in complex_lapack.NAMES and complex_lapack.takes(instance):
        return f"{DOMAIN}::{name}"
    if domain == "smelt" and name in general_lapack.NAMES and general_lapack.takes(instance, name):
        return f"{DOMAIN}::{name}"
    if domain != "smelt" or name not in NAMES or not takes(instance, name):
        return None
    return f"{DOMAIN}::{name}"
