"""The real 2x2 matrices of complex numbers, which products of complex numbers read."""

from __future__ import annotations

from smelt.operators.complex_dot import matrices_of
from smelt.program.instruction import COMPLEX_MATRICES
from smelt.targets.host.kernels.kernel import Array, Call, Step, kernel


@kernel(COMPLEX_MATRICES)
def complex_matrices(call: Call) -> Step:
    """Return the step that writes the matrix of each pair."""
    perm, axis, signs = call.ints("perm"), call.integer("axis"), call.ints("signs")

    def run(pairs: Array, out: Array) -> None:
        """Write the matrices of ``pairs``."""
        matrices_of(pairs, perm, axis, signs, out)

    return Step(run)
