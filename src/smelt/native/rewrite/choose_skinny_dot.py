"""Use dot products of rows for a matrix times one or a few columns."""

from __future__ import annotations

from smelt.native.kernels.skinny_dot import SKINNY_DOT, supports
from smelt.native.rewrite.choose import choose
from smelt.program.instruction import Program


def choose_skinny_dot(program: Program) -> None:
    """Replace products with one or a few columns by ``SKINNY_DOT``, in place, bodies included."""
    choose(program, lambda instance: SKINNY_DOT if supports(instance) else None)
