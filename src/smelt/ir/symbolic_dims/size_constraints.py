"""Constraints on symbolic dims, such as ``S % 4 == 0``, under which the model was traced.

The results of JAX's trace may be wrong for other sizes, so each run checks the constraints. They
are kept in the metadata of the model, so files keep them, too.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir.symbolic_dims.dim_texts import symbolic_dim
from smelt.ir.symbolic_dims.dims import size_of, symbols_of
from smelt.ir.symbolic_dims.empty_dims import is_never_empty
from smelt.ir.symbolic_dims.solved_dims import is_one_symbol, misfit_of, solve

_KEY = "smelt.size_constraints"
_RELATION = re.compile(r"(.+?)(==|>=|<=)(.+)")
_HOLDS: Mapping[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
}

Dims = Sequence[int | ir.SymbolicDim]

KEPT = 64
"""The most sets of shapes that a check remembers."""


def note_constraints(model: ir.Model, texts: Iterable[str]) -> None:
    """Note the constraints of ``model``, each a text such as ``S % 4 == 0``; none clears the
    note."""
    lines = dict.fromkeys(text.strip() for text in texts)
    if lines:
        model.metadata_props[_KEY] = "\n".join(lines)
    else:
        model.metadata_props.pop(_KEY, None)


def constraints_of(model: ir.Model) -> tuple[str, ...]:
    """Return the noted constraints."""
    noted = model.metadata_props.get(_KEY, "")
    return tuple(line for line in noted.splitlines() if _RELATION.fullmatch(line))


def broken_by(constraints: Iterable[str], sizes: Mapping[str, int]) -> str:
    """Return the first constraint that ``sizes`` violate; empty if there is none.

    A constraint on a symbol that has no size is not checked.
    """
    for text in constraints:
        left, relation, right = sides_of(text)
        left_size, right_size = (size_of(symbolic_dim(side), sizes) for side in (left, right))
        if (
            isinstance(left_size, int)
            and isinstance(right_size, int)
            and not _HOLDS[relation](left_size, right_size)
        ):
            return text
    return ""


def bind_constraints(model: ir.Model, sizes: Mapping[str, int]) -> None:
    """Write ``sizes`` into the noted constraints, and drop those without further symbols.

    Raises UsageError E633 if the sizes break one.
    """
    constraints = constraints_of(model)
    broken = broken_by(constraints, sizes)
    if broken:
        raise UsageError(
            "E633",
            f"the model does not take {_sizes_text(sizes, broken)}",
            why=f"the function was traced with {broken}",
            fix="bind the dim to another size, or trace without this constraint",
        )
    remaining = []
    for text in constraints:
        if not _symbols(text) & sizes.keys():
            remaining.append(text)
            continue
        left_side, relation, right_side = sides_of(text)
        sides = [size_of(symbolic_dim(side), sizes) for side in (left_side, right_side)]
        if not all(isinstance(side, int) for side in sides):
            remaining.append(f"{sides[0]} {relation} {sides[1]}")
    note_constraints(model, remaining)


class SizeCheck:
    """Checks the shapes of the inputs of a run; see ``check_of``."""

    def __init__(self, inputs: Sequence[tuple[str, Dims | None]], constraints: Sequence[str]):
        """Check the sizes of ``inputs`` by ``constraints``; ``_passed`` are the shapes that passed
        already.
        """
        self.inputs = tuple(inputs)
        self.constraints = tuple(constraints)
        self._passed: set[tuple[tuple[int, ...], ...]] = set()

    def __call__(self, shapes: tuple[tuple[int, ...], ...]) -> None:
        """Raise UsageError E670 if ``shapes`` violate a constraint or do not fit an expression.

        Inputs whose rank differs from the declared one are skipped.
        """
        if shapes in self._passed:
            return
        self._check(shapes)
        if len(self._passed) >= KEPT:
            self._passed.clear()
        self._passed.add(shapes)

    def _check(self, shapes: tuple[tuple[int, ...], ...]) -> None:
        """Raise an error if ``shapes`` do not fit the inputs or break a constraint."""
        checked_inputs = [
            (name, dims, shape)
            for (name, dims), shape in zip(self.inputs, shapes, strict=True)
            if dims is not None and len(dims) == len(shape)
        ]
        all_dims = [dim for _, dims, _ in checked_inputs for dim in dims]
        sizes = solve(all_dims, [size for _, _, shape in checked_inputs for size in shape])
        for name, dims, shape in checked_inputs:
            why = misfit_of(dims, shape, sizes)
            if why:
                raise _size_error(name, dims, shape, why)
        broken = broken_by(self.constraints, sizes)
        if broken:
            inputs_of_constraint = [each for each in checked_inputs if _is_about(broken, each[1])]
            name, dims, shape = inputs_of_constraint[0]
            why = f"{_sizes_text(sizes, broken)}, and the function was traced with {broken}"
            raise _size_error(name, dims, shape, why)


def check_of(model: ir.Model) -> SizeCheck | None:
    """Return the check of the sizes of each run of ``model``, or None if there is nothing to check.

    Only sizes that smelt traced are checked; the names of dims in other files may be wrong.
    """
    constraints = constraints_of(model)
    inputs = [
        (value.name or "", None if value.shape is None else value.shape.dims)
        for value in model.graph.inputs
    ]
    dims = [dim for _, dims_of_input in inputs for dim in dims_of_input or ()]
    has_expressions = is_never_empty(model) and any(
        symbols_of(dim) and not is_one_symbol(dim) for dim in dims
    )
    return SizeCheck(inputs, constraints) if constraints or has_expressions else None


def _size_error(name: str, dims: Dims, shape: Sequence[int], why: str) -> UsageError:
    """Return the error E670 for input ``name``."""
    return UsageError(
        "E670",
        f"input {name!r} of shape {list(shape)} does not fit [{', '.join(map(str, dims))}]",
        why=why,
        fix="give arrays of sizes that the model takes, for instance padded ones",
    )


def _is_about(constraint: str, dims: Dims) -> bool:
    """True if ``constraint`` has a symbol of ``dims``."""
    return any(_symbols(constraint) & symbols_of(dim) for dim in dims)


def sides_of(text: str) -> tuple[str, str, str]:
    """Return the left side, the relation (``==``, ``>=``, ``<=``) and the right side."""
    match = _RELATION.fullmatch(text)
    assert match is not None  # ``constraints_of`` keeps no other line
    left, relation, right = match.groups()
    return left.strip(), relation, right.strip()


def _symbols(text: str) -> frozenset[str]:
    """Return the symbols of both sides of a constraint."""
    left, _, right = sides_of(text)
    return symbols_of(symbolic_dim(left)) | symbols_of(symbolic_dim(right))


def _sizes_text(sizes: Mapping[str, int], text: str) -> str:
    """Return the sizes of the symbols in the constraint ``text``: ``S=5``."""
    return ", ".join(f"{name}={sizes[name]}" for name in sorted(_symbols(text) & sizes.keys()))
