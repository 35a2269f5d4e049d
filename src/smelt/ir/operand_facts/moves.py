"""Requirements of operators that move elements: Concat, Reshape, Slice, Pad and others."""

from __future__ import annotations

from math import prod

from smelt.ir.operand_facts.operands import (
    Facts,
    Operands,
    Size,
    Unknown,
    agree,
    are_axes,
    at_least,
    broadcast,
    is_axis,
    is_single,
    on_or_off,
    one_of,
    without_axis,
)
from smelt.ir.opset import REDUCTIONS


def _all_dims(n: Operands) -> list[tuple[Size, ...]]:
    """Return the dims of all operands; raises Unknown if the shape of one is unknown."""
    return [n.dims(index) for index in range(len(n.node.inputs))]


def _other_axes_agree(n: Operands) -> bool:
    """True if the operands have equal sizes along all axes except that of the Concat."""
    first, *others = _all_dims(n)
    axis = n.number("axis", 0) % len(first)
    return all(agree(without_axis(first, axis), without_axis(dims, axis)) for dims in others)


def _element_counts_agree(n: Operands) -> bool:
    """True if the target shape of a Reshape can hold the elements of the input.

    A target size of -1 holds the remaining elements, so the other sizes must divide their number.
    """
    sizes, input_dims = n.integers(1), n.dims(0)
    keeps = not n.number("allowzero", 0)
    target = [input_dims[i] if keeps and not size else size for i, size in enumerate(sizes)]
    known = [size for size in target if size != -1]
    if None in known or sizes.count(-1) > 1:
        raise Unknown
    total = prod(size for size in known if size is not None)
    count = n.count(0)
    if -1 not in sizes:
        return count == total
    return total == 0 or count % total == 0


def _zeros_are_allowed(n: Operands) -> bool:
    """True if each 0 in the target of a Reshape has a meaning.

    A 0 copies the input size at its position, so the input must have that axis. With ``allowzero``
    the 0 is a size, and -1 beside it could be any number.
    """
    sizes = n.integers(1)
    if n.number("allowzero", 0):
        return not (0 in sizes and -1 in sizes)
    return 0 not in sizes[n.rank(0) :]


def _part_sizes(n: Operands) -> list[int]:
    """Return the sizes of the parts of a Split."""
    return n.listed("split", 1)


def _split_axis_size(n: Operands) -> int:
    """Return the size of the axis that a Split divides."""
    return n.size(0, n.number("axis", 0))


def _equal_parts(n: Operands) -> bool:
    """True if the parts of a Split are equal, or may differ: it has sizes, or opset 18."""
    has_sizes = n.is_present(1) or n.has("split") or n.has("num_outputs")
    return has_sizes or n.opset >= 18 or _split_axis_size(n) % len(n.node.outputs) == 0


def _slice_axes(n: Operands) -> list[int]:
    """Return the axes of a Slice; by default the first ones."""
    return n.listed("axes", 3) if n.has("axes") or n.is_present(3) else list(range(len(_starts(n))))


def _starts(n: Operands) -> list[int]:
    """Return the starts of a Slice."""
    return n.listed("starts", 1)


def _padded_axes(n: Operands) -> int:
    """Return the number of axes that a Pad pads."""
    return len(n.integers(3)) if n.is_present(3) else n.rank(0)


def _one_per_resized_axis(n: Operands, index: int) -> bool:
    """True if operand ``index`` of a Resize is empty, or has an element for each resized axis."""
    count = n.size(index, 0)
    resized_axes = len(n.numbers("axes")) if n.has("axes") else n.rank(0)
    return count in (0, resized_axes)


def _scales(n: Operands) -> list[float]:
    """Return the scales of an Upsample, an attribute before opset 9."""
    return n.factors("scales") if n.has("scales") else n.floats(1)


def _pad_mode_exists(n: Operands) -> bool:
    """True if the mode of a Pad exists at its opset."""
    mode = n.text("mode", "constant")
    return mode in ("constant", "reflect", "edge") or (mode == "wrap" and n.opset >= 19)


def _enough_to_pad(n: Operands) -> bool:
    """True if edge and wrap have an element to repeat, and reflect pads less than the size."""
    mode, sizes, pads = n.text("mode", "constant"), n.dims(0), n.listed("pads", 1)
    if mode == "constant" or len(pads) != 2 * len(sizes) or n.is_present(3) or None in sizes:
        raise Unknown
    largest_pads = [
        max(0, *both_ends) for both_ends in zip(pads[: len(sizes)], pads[len(sizes) :], strict=True)
    ]
    if mode == "reflect":
        return all(pad < max(size or 0, 1) for pad, size in zip(largest_pads, sizes, strict=True))
    return not any(pad and not size for pad, size in zip(largest_pads, sizes, strict=True))


_COORDINATES = (
    *("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"),
    *("half_pixel_symmetric", "tf_half_pixel_for_nn"),
)
"""The modes of all opsets: ONNX Runtime accepts each at any opset."""


def _coordinate_mode_is_known(n: Operands) -> bool:
    """True if the coordinate mode of a Resize is known."""
    return n.text("coordinate_transformation_mode", "half_pixel") in _COORDINATES


def _reduced_axes_exist(n: Operands) -> bool:
    """True if each axis that the operator reduces is one of its operand."""
    axes = n.listed("axes", 1)
    return all(-n.rank(0) <= axis < n.rank(0) for axis in axes)


NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "")
"""ONNX Runtime treats an empty text as the default."""

FACTS: Facts = {
    "Concat": (
        ("operands have equal sizes along all axes except that of the Concat", _other_axes_agree),
    ),
    "Reshape": (
        ("the shape is a vector", lambda n: n.rank(1) == 1),
        (
            "a 0 copies a size of the input; with allowzero there is no -1 beside it",
            _zeros_are_allowed,
        ),
        ("the result has the elements of the input", _element_counts_agree),
    ),
    "ConstantOfShape": (
        ("the value is one element", lambda n: n.elements_of("value") in (None, 1)),
    ),
    "Expand": (
        ("the input broadcasts with the shape", lambda n: broadcast([n.dims(0), n.integers(1)])),
    ),
    "Split": (
        ("there is a part for each output", lambda n: len(_part_sizes(n)) == len(n.node.outputs)),
        (
            "the sizes of the parts add up to the size of the axis",
            lambda n: sum(_part_sizes(n)) == _split_axis_size(n),
        ),
        (
            "a Split has sizes or num_outputs, not both",
            lambda n: not (n.is_present(1) and n.has("num_outputs")),
        ),
        ("before opset 18, parts without sizes are equal", _equal_parts),
        at_least("num_outputs", 1),
    ),
    "Slice": (
        ("there is an end for each start", lambda n: len(_starts(n)) == len(n.listed("ends", 2))),
        ("there is a start for each axis", lambda n: len(_starts(n)) == len(_slice_axes(n))),
        ("there is a step for each start", lambda n: len(n.integers(4)) == len(_starts(n))),
        ("axes are those of the input, each once", lambda n: are_axes(_slice_axes(n), n.rank(0))),
        ("starts and ends are vectors", lambda n: n.rank(1) == 1 and n.rank(2) == 1),
    ),
    "Tile": (("there is a repeat for each axis", lambda n: n.size(1, 0) == n.rank(0)),),
    "Pad": (
        ("mode is constant, reflect, edge or (from opset 19 on) wrap", _pad_mode_exists),
        (
            "there are two pads for each axis",
            lambda n: len(n.listed("pads", 1)) == 2 * _padded_axes(n),
        ),
        ("axes are those of the input, each once", lambda n: are_axes(n.integers(3), n.rank(0))),
        ("the value is one number", is_single(2)),
        ("the input has enough elements to repeat or mirror", _enough_to_pad),
    ),
    "Resize": (
        one_of("mode", "nearest", "nearest", "linear", "cubic"),
        ("coordinate_transformation_mode is one of ONNX", _coordinate_mode_is_known),
        one_of("nearest_mode", NEAREST[0], *NEAREST),
        one_of("keep_aspect_ratio_policy", "stretch", "stretch", "not_larger", "not_smaller"),
        ("scales are more than 0", lambda n: min(n.floats(2), default=1.0) > 0),
        ("there is a scale for each axis", lambda n: _one_per_resized_axis(n, 2)),
        ("there is a size for each axis", lambda n: _one_per_resized_axis(n, 3)),
        (
            "scales or sizes are given, and not both",
            lambda n: (
                n.opset < 13
                or (n.is_present(2) and not n.is_present(3) and n.size(2, 0) > 0)
                or (n.is_present(3) and (not n.is_present(2) or n.size(2, 0) == 0))
            ),
        ),
    ),
    "Upsample": (
        one_of("mode", "nearest", "nearest", "linear", "cubic"),
        ("scales of an Upsample are 1 or more", lambda n: min(_scales(n), default=1.0) >= 1),
        ("there is a scale for each axis", lambda n: len(_scales(n)) == n.rank(0)),
    ),
    "CumSum": (
        ("axis is one number", is_single(1)),
        ("axis is one of the input", lambda n: are_axes(n.integers(1), n.rank(0))),
        on_or_off("exclusive"),
        on_or_off("reverse"),
    ),
    "Softmax LogSoftmax Hardmax": (
        ("axis is one of the input", lambda n: is_axis(n, 0, -1 if n.opset >= 13 else 1)),
    ),
    " ".join(sorted(REDUCTIONS)): (
        ("axes are a vector", lambda n: n.rank(1) == 1),
        ("axes are those of the input", _reduced_axes_exist),
    ),
    "EyeLike": (("the input is a matrix", lambda n: n.rank(0) == 2),),
    "Trilu": (("the input has at least 2 axes", lambda n: n.rank(0) >= 2),),
}
