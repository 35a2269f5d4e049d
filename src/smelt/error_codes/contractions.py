"""Errors in equations of contractions, in algebras and in contraction paths."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E655": ErrorCode(
        "a malformed equation",
        "An equation names each dim of the operands and of the result by one character. "
        "Commas separate operands; `...` stands for dims without names.",
        'smelt.compile_einsum("ab,bc->ac", [(2, 3), (3, 4)])',
    ),
    "E656": ErrorCode(
        "operands that do not fit an equation",
        "A term of the equation has another number of dims than its operand, a name stands for two "
        "sizes, or the algebra is not defined on the element type.",
        "give one shape per term, and use one name for one size",
    ),
    "E657": ErrorCode(
        "not a semiring",
        "smelt does not know the operators given as plus or times, or zero and one are not their "
        "neutral elements.",
        'smelt.Semiring(plus="Max", times="Add", zero=-math.inf, one=0)',
    ),
    "E658": ErrorCode(
        "no path for a contraction",
        "The method in `optimize=` is unknown, a path does not contain each operand once, "
        "or no path keeps all intermediate results within `memory_limit=`.",
        "allow more with memory_limit=, or choose another path with optimize=",
    ),
    "E699": ErrorCode(
        "a wrong argument of a contraction",
        "An argument is of the wrong type or out of range: threads= and retries= count, progress= "
        "is a function, checkpoint= names a file, shapes and constants= are sequences.",
        "artifact.sum_slices(arrays, threads=2, progress=print, checkpoint='state.npz')",
    ),
    "E659": ErrorCode(
        "a model that an algebra cannot compute",
        "smelt.over_semiring takes models of sums, products and operators that move elements; the "
        "model has another operator, or an element type that the algebra is not defined on.",
        "smelt.over_semiring(smelt.trace(lambda a, b: a @ b, ...), 'min_plus')",
    ),
}
