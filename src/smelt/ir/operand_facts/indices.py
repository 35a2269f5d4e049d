"""Requirements of operators that read elements by indices: Gather, scatters, TopK and others."""

from __future__ import annotations

from smelt.ir.operand_facts.operands import (
    Fact,
    Facts,
    Operands,
    Unknown,
    agree,
    is_axis,
    is_single,
    without_axis,
    zip_known,
)


def _indices_are_in_bounds(n: Operands) -> bool:
    """True if each index of a Gather is from -size to size - 1, for the size of its axis."""
    size = n.size(0, n.number("axis", 0))
    return all(-size <= index < size for index in n.integers(1))


def _index_tuples_are_in_bounds(n: Operands, batch: int) -> bool:
    """True if each index tuple of a GatherND or ScatterND lies within the data.

    Number i of a tuple indexes axis ``batch + i`` of the data.
    """
    depth = n.size(1, -1)
    sizes = n.dims(0)[batch : batch + depth]
    if len(sizes) < depth:
        raise Unknown
    for position, index in enumerate(n.integers(1)):
        size = sizes[position % depth]
        if size is not None and not -size <= index < size:
            return False
    return True


def _axes_are_0_and_1(n: Operands) -> bool:
    """True if the axes of a ReverseSequence are 0 and 1 in some order."""
    return {n.number("batch_axis", 1), n.number("time_axis", 0)} == {0, 1}


def _indices_fit_data(n: Operands) -> bool:
    """True if the indices have at most the sizes of the data, except along the axis."""
    axis = n.number("axis", 0) % n.rank(0)
    data, indices = (without_axis(n.dims(operand), axis) for operand in (0, 1))
    return all(
        data_size is None or index_size is None or index_size <= data_size
        for data_size, index_size in zip_known(data, indices)
    )


def _updates_have_slice_shape(n: Operands) -> bool:
    """True if updates have the shape ``indices.shape[:-1] + data.shape[indices.shape[-1]:]``."""
    data, indices = n.dims(0), n.dims(1)
    return agree(n.dims(2), (*indices[:-1], *data[n.size(1, -1) :]))


def _axis(default: int) -> Fact:
    """Require an axis of the first operand."""
    return ("axis is one of the input", lambda n: is_axis(n, 0, default))


RANKS: Fact = ("indices have the rank of the data", lambda n: n.rank(0) == n.rank(1))
IN_BOUNDS: Fact = ("indices are within the size of the axis", _indices_are_in_bounds)
DEPTH: Fact = (
    "an index has at most one number for each axis of the data",
    lambda n: n.size(1, -1) + n.number("batch_dims", 0) <= n.rank(0),
)

FACTS: Facts = {
    "Gather": (IN_BOUNDS,),
    "GatherElements": (
        RANKS,
        _axis(0),
        IN_BOUNDS,
        ("indices are no larger than the data, except along axis", _indices_fit_data),
    ),
    "GatherND": (
        (
            "indices are within the sizes of the data",
            lambda n: _index_tuples_are_in_bounds(n, n.number("batch_dims", 0)),
        ),
        (
            "data and indices have the same batch dims",
            lambda n: agree(*(n.dims(i)[: n.number("batch_dims", 0)] for i in (0, 1))),
        ),
    ),
    "ScatterElements Scatter": (
        RANKS,
        _axis(0),
        IN_BOUNDS,
        ("there is an update for each index", lambda n: agree(n.dims(1), n.dims(2))),
    ),
    "ScatterND": (
        DEPTH,
        ("indices are within the sizes of the data", lambda n: _index_tuples_are_in_bounds(n, 0)),
        ("updates have the shape of the slices that the indices select", _updates_have_slice_shape),
    ),
    "OneHot": (
        ("the depth is one number", is_single(1)),
        ("the depth is 1 or more", lambda n: n.integers(1)[0] > 0),
        ("there are two values", lambda n: n.count(2) == 2),
    ),
    "ReverseSequence": (
        ("the input has at least 2 axes", lambda n: n.rank(0) >= 2),
        ("batch_axis and time_axis are 0 and 1, or 1 and 0", _axes_are_0_and_1),
        (
            "there is a length for each sequence",
            lambda n: agree(n.dims(1), [n.dims(0)[n.number("batch_axis", 1)]]),
        ),
    ),
    "TopK": (
        ("k is one number", is_single(1)),
        ("axis has k elements", lambda n: n.integers(1)[0] <= n.size(0, n.number("axis", -1))),
    ),
}
