"""Use LAPACK for decompositions of the domain ``smelt``, if this process has it."""

from __future__ import annotations

from smelt.native.kernels import (
    complex_lapack,
    eigh_lane_batched,
    general_lapack,
    small_complex_qr,
    svd_lane_batched,
)
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.lapack import DOMAIN, NAMES, supports
from smelt.native.rewrite.choose import choose
from smelt.program.instruction import Program

LANE_BATCHED = {
    "Eigh": (eigh_lane_batched.supports, eigh_lane_batched.EIGH),
    "ComplexEigh": (eigh_lane_batched.supports_parts, eigh_lane_batched.COMPLEX_EIGH),
    "ComplexQR": (small_complex_qr.supports, small_complex_qr.NAME),
    "SVD": (svd_lane_batched.supports, svd_lane_batched.SVD),
    "SingularValues": (svd_lane_batched.supports, svd_lane_batched.SINGULAR_VALUES),
}
"""Kernels for many small matrices, by operator: the test whether the kernel supports an instance,
and the kernel's operator. Some kernels call LAPACK for their last steps."""


def call_lapack(program: Program) -> None:
    """Replace decompositions by operators whose kernels call LAPACK, in place, bodies included."""
    choose(program, _lapack_operator)


def _lapack_operator(instance: Instance) -> str | None:
    """Return the name of the LAPACK operator that computes ``instance``, or None."""
    domain, _, name = instance.instruction.op.rpartition("::")
    if domain != "smelt":
        return None
    if name in LANE_BATCHED:
        supports_small, lane_batched = LANE_BATCHED[name]
        if supports_small(instance):
            return lane_batched
    if (
        (name in complex_lapack.NAMES and complex_lapack.supports(instance))
        or (name in general_lapack.NAMES and general_lapack.supports(instance, name))
        or (name in NAMES and supports(instance, name))
    ):
        return f"{DOMAIN}::{name}"
    return None
