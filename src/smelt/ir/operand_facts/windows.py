"""Convolutions and pooling, and operators on images."""

from __future__ import annotations

from math import prod

from smelt.ir.operand_facts.operands import Fact, Facts, Operands, agree

PADDING = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")

AUTO_PAD: Fact = (
    f"auto_pad is one of {', '.join(PADDING)}",
    lambda n: n.text("auto_pad", "NOTSET") in PADDING,
)


def _convolution(filters: int) -> tuple[Fact, ...]:
    """The rows of a convolution whose filters are operand ``filters``."""
    return (
        AUTO_PAD,
        ("groups are 1 or more", lambda n: n.number("group", 1) > 0),
        (
            "the image has as many channels as a filter, times groups",
            lambda n: n.size(0, 1) == n.size(filters, 1) * n.number("group", 1),
        ),
        (
            "groups have equally many filters",
            lambda n: n.size(filters, 0) % n.number("group", 1) == 0,
        ),
        (
            "kernel_shape is the shape of a filter behind its channels",
            lambda n: agree(n.numbers("kernel_shape"), n.dims(filters)[2:]),
        ),
    )


def _one_per_filter(index: int, filters: int) -> Fact:
    return (
        "the bias has one element for each filter",
        lambda n: agree(n.dims(index), n.dims(filters)[:1]),
    )


def _scales_of_filters(n: Operands) -> bool:
    return n.count(4) in (1, n.size(3, 0))


def _small_pads(n: Operands) -> bool:
    kernel = n.numbers("kernel_shape")
    pads = n.numbers("pads")
    return all(pad < size for pad, size in zip(pads, [*kernel, *kernel], strict=False))


SPATIAL: Fact = ("the input has at least 3 axes", lambda n: n.rank(0) >= 3)

FACTS: Facts = {
    "Conv": (*_convolution(1), _one_per_filter(2, 1)),
    "ConvInteger": _convolution(1),
    "QLinearConv": (
        *_convolution(3),
        _one_per_filter(8, 3),
        ("the filters have one scale, or one each", _scales_of_filters),
    ),
    "ConvTranspose": (
        AUTO_PAD,
        ("groups are 1 or more", lambda n: n.number("group", 1) > 0),
        ("there is a filter for each channel of the image", lambda n: n.size(0, 1) == n.size(1, 0)),
        (
            "groups have equally many channels",
            lambda n: n.size(0, 1) % n.number("group", 1) == 0,
        ),
        (
            "the bias has one element for each channel of the result",
            lambda n: agree(n.dims(2), [n.size(1, 1) * n.number("group", 1)]),
        ),
        (
            "kernel_shape is the shape of a filter behind its channels",
            lambda n: agree(n.numbers("kernel_shape"), n.dims(1)[2:]),
        ),
    ),
    "DeformConv": (
        (
            "the image has as many channels as a filter, times groups",
            lambda n: n.size(0, 1) == n.size(1, 1) * n.number("group", 1),
        ),
    ),
    "MaxPool AveragePool LpPool": (
        AUTO_PAD,
        ("padding is smaller than the kernel", _small_pads),
    ),
    "GlobalAveragePool GlobalMaxPool GlobalLpPool": (SPATIAL,),
    "MaxUnpool": (("there is an index for each element", lambda n: agree(n.dims(0), n.dims(1))),),
    "DepthToSpace SpaceToDepth": (("the input has 4 axes", lambda n: n.rank(0) == 4),),
    "GridSample": (
        ("input and grid have one rank", lambda n: n.rank(0) == n.rank(1)),
        ("input and grid are of one batch", lambda n: n.size(0, 0) == n.size(1, 0)),
        ("the grid has a coordinate for each axis", lambda n: n.size(1, -1) == n.rank(0) - 2),
    ),
    "AffineGrid": (
        (
            "theta is (N, 2, 3) for images and (N, 3, 4) for volumes",
            lambda n: n.dims(0)[1:] in ((2, 3), (3, 4)) or None in n.dims(0)[1:],
        ),
    ),
    "RoiAlign": (
        ("a region has 4 numbers", lambda n: n.size(1, 1) == 4),
        ("each region has an image", lambda n: n.size(1, 0) == n.size(2, 0)),
    ),
    "NonMaxSuppression": (
        ("a box has 4 numbers", lambda n: n.size(0, 2) == 4),
        ("each box has a score", lambda n: n.size(0, 1) == n.size(1, 2)),
        ("boxes and scores are of one batch", lambda n: n.size(0, 0) == n.size(1, 0)),
    ),
    "Col2Im": (
        (
            "channels are a multiple of the size of a block",
            lambda n: n.size(0, 1) % max(prod(n.held(2)), 1) == 0,
        ),
    ),
}
