"""Operators with data-dependent result sizes, which must equal the declared sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from smelt.errors import UsageError
from smelt.targets.host.kernels.kernel import Array, Call, Step, kernel


def checked(op: str, computed: Sequence[int], declared: Sequence[int]) -> None:
    """Raise UsageError E670 unless the computed shape equals the declared one."""
    if tuple(computed) != tuple(declared):
        raise UsageError(
            "E670",
            f"{op} computes the shape {list(computed)}; the model declares {list(declared)}",
            why="memory is planned for the declared shape",
            fix="give inputs that lead to the declared shape, or declare the computed one",
        )


@kernel("NonZero")
def non_zero(call: Call) -> Step:
    """Return the step that writes the coordinates of nonzero elements, in row-major order."""

    def run(x: Array, out: Array) -> None:
        """Write the indices of nonzero elements, after a check of their number."""
        indices = np.stack(np.nonzero(x)) if x.ndim else np.zeros((0, int(x != 0)), np.int64)
        checked("NonZero", indices.shape, out.shape)
        np.copyto(out, indices)

    return Step(run)


@kernel("Compress")
def compress(call: Call) -> Step:
    """Return the step that selects slices along an axis; a condition shorter than the axis excludes
    the rest.
    """
    axis = call.integer("axis")

    def run(x: Array, condition: Array, out: Array) -> None:
        """Write the selected slices, after a check of their number."""
        selected = np.compress(condition[: x.shape[axis]], x, axis)
        checked("Compress", selected.shape, out.shape)
        np.copyto(out, selected)

    return Step(run)


@kernel("Unique")
def unique(call: Call) -> Step:
    """Return the step that writes the distinct rows of ``x``, in order of value or of first index.

    NaN equals NaN, and is the largest value.
    """
    by_value = bool(call.integer("sorted"))

    def run(x: Array, out: Array, first_indices: Array, inverse: Array, counts: Array) -> None:
        """Write unique rows, first indices, inverse and counts, after a check of their number."""
        first, number = distinct_rows(x, by_value)
        checked("Unique", (len(first),), counts.shape)
        np.copyto(out, x[first])
        np.copyto(first_indices, first)
        np.copyto(inverse, number)
        np.copyto(counts, np.bincount(number, minlength=len(first)))

    return Step(run)


def distinct_rows(x: Array, by_value: bool) -> tuple[Array, Array]:
    """Return the index of the first of each set of equal rows of ``x``, and the number of the set
    that each row belongs to.

    Sets are numbered in order of value if ``by_value``, else in order of first index.
    """
    flat = x.reshape(len(x), math.prod(x.shape[1:]))
    # elements become their ranks in the column, which compare NaN like any other value
    columns = [np.unique(column, return_inverse=True)[1] for column in flat.T]
    keys = np.stack(columns, 1) if columns else np.zeros((len(x), 0), np.int64)
    order = np.lexsort(keys.T[::-1]) if columns else np.arange(len(x))
    is_new = np.ones(len(x), bool)  # for each row in sorted order: differs from the one before
    is_new[1:] = (keys[order[1:]] != keys[order[:-1]]).any(1)
    number = np.empty(len(x), np.int64)
    number[order] = np.cumsum(is_new) - 1
    first = order[is_new]
    if by_value or not len(first):
        return first, number
    by_first = np.argsort(first)
    new_number = np.argsort(by_first)  # the inverse permutation
    return first[by_first], new_number[number]


@kernel("NonMaxSuppression")
def non_max_suppression(call: Call) -> Step:
    """Return the step of a NonMaxSuppression: of boxes that overlap, only the best is kept."""
    centred = bool(call.integer("center_point_box"))

    def run(
        boxes: Array,
        scores: Array,
        max_count: Array,
        overlap: Array | None,
        min_score: Array | None,
        out: Array,
    ) -> None:
        """Write the selected boxes; their number must be the declared one."""
        selected = selected_boxes_of(boxes, scores, max_count, overlap, min_score, centred)
        checked("NonMaxSuppression", selected.shape, out.shape)
        np.copyto(out, selected)

    return Step(run)


def selected_boxes_of(
    boxes: Array,
    scores: Array,
    max_count: Array,
    overlap: Array | None,
    min_score: Array | None,
    centred: bool,
) -> Array:
    """Return sample, class and box index [N, 3] of each box that NonMaxSuppression keeps.

    ``overlap`` is the threshold of intersection over union, ``min_score`` that of scores.
    """
    limit = 0.0 if overlap is None else overlap.item()
    floor = None if min_score is None else min_score.item()
    corners = _corners(boxes, centred)
    rows = [
        (sample, label, box)
        for sample, label in np.ndindex(scores.shape[:2])
        for box in _selected_boxes(
            corners[sample], scores[sample, label], int(max_count.item()), limit, floor
        )
    ]
    return np.asarray(rows, np.int64).reshape(-1, 3)


def _corners(boxes: Array, centred: bool) -> Array:
    """Return the lower and the upper corner of each box."""
    a, b = boxes[..., :2], boxes[..., 2:]
    low, high = (a - b / 2, a + b / 2) if centred else (np.minimum(a, b), np.maximum(a, b))
    return np.concatenate([low, high], -1)


def _selected_boxes(
    boxes: Array, scores: Array, most: int, limit: float, floor: float | None
) -> Iterator[int]:
    """Yield the indices of the boxes kept for one class, best score first, equal ones by index.

    A box is dropped if its overlap with a kept box exceeds ``limit``. At most ``most`` boxes are
    kept, with scores above ``floor``.
    """
    selected: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        if len(selected) >= most or (floor is not None and not scores[i] > floor):
            return
        if not any(_overlap(boxes[i], boxes[j]) > limit for j in selected):
            selected.append(int(i))
            yield int(i)


def _overlap(a: Array, b: Array) -> float:
    """Return the intersection over union of two boxes."""
    extent = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    if not (extent > 0).all():
        return 0.0
    both = np.prod(extent)
    return float(both / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - both))


@kernel("BitCast")
def bit_cast(call: Call) -> Step:
    """Return the step that reinterprets the bytes in another dtype."""
    dtype = call.outputs[0].dtype
    return Step(
        lambda x, out: np.copyto(out, np.ascontiguousarray(x).view(dtype).reshape(out.shape))
    )
