"""Requirements of convolutions, pooling, and operators on images."""

from __future__ import annotations

from math import prod

from smelt.ir.operand_facts.operands import (
    Fact,
    Facts,
    Operands,
    Unknown,
    agree,
    is_single,
    on_or_off,
    one_of,
    zip_known,
)

AUTO_PAD = one_of("auto_pad", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def _spatial(n: Operands, name: str, axes: int, default: int) -> list[int]:
    """Return an attribute with one number per spatial axis (two for pads), or ``default`` for
    each."""
    return n.numbers(name) if n.has(name) else [default] * axes


def _none_below(name: str, least: int) -> Fact:
    """Require that no number of the attribute ``name`` is below ``least``, 0 or 1."""
    condition = "more than 0" if least else "0 or more"
    return (f"{name} are {condition}", lambda n: min(n.numbers(name), default=least) >= least)


PADS = _none_below("pads", 0)


def _filter_fits(filters: int) -> Fact:
    """Require that the padded image holds one filter; ONNX Runtime refuses smaller images."""

    def holds(n: Operands) -> bool:
        """True if, along each known axis, size + pads >= dilation * (taps - 1) + 1."""
        padding = n.text("auto_pad", "NOTSET")
        if padding not in ("NOTSET", "VALID"):
            raise Unknown
        image, kernel = n.dims(0)[2:], n.dims(filters)[2:]
        count = len(image)
        dilations = _spatial(n, "dilations", count, 1)
        pads = _spatial(n, "pads" if padding == "NOTSET" else "", 2 * count, 0)
        return all(
            size is None or taps is None or size + before + after > dilation * (taps - 1)
            for size, taps, dilation, before, after in zip_known(
                image, kernel, dilations, pads[:count], pads[count:]
            )
        )

    return ("the padded image is at least as large as the filter", holds)


def _output_padding_is_small(n: Operands) -> bool:
    """True if each output padding is less than the stride or the dilation of its axis."""
    padding = n.numbers("output_padding")
    strides = _spatial(n, "strides", len(padding), 1)
    dilations = _spatial(n, "dilations", len(padding), 1)
    return all(
        0 <= pad < max(stride, dilation)
        for pad, stride, dilation in zip_known(padding, strides, dilations)
    )


def _block_positions(n: Operands) -> int:
    """Return the number of block positions of a Col2Im, which equals the columns of its input.

    Along each axis: floor((size + pads - dilation * (taps - 1) - 1) / stride) + 1.
    """
    image, block = n.integers(1), n.integers(2)
    count = len(image)
    dilations, strides = (_spatial(n, name, count, 1) for name in ("dilations", "strides"))
    pads = _spatial(n, "pads", 2 * count, 0)
    axes = zip_known(image, block, dilations, strides, pads[:count], pads[count:])
    return prod(
        (size + before + after - dilation * (taps - 1) - 1) // stride + 1
        for size, taps, dilation, stride, before, after in axes
    )


def _zero_point_count_fits(n: Operands) -> bool:
    """True if there is one zero point, or one per filter."""
    return n.rank(3) > 1 or n.count(3) in (1, n.size(1, 0))


def _convolution(filters: int) -> tuple[Fact, ...]:
    """Return the requirements of a convolution whose filters are operand ``filters``."""
    return (
        AUTO_PAD,
        PADS,
        ("groups are 1 or more", lambda n: n.number("group", 1) > 0),
        (
            "the image has as many channels as a filter, times groups",
            lambda n: n.size(0, 1) == n.size(filters, 1) * n.number("group", 1),
        ),
        (
            "the number of filters is a multiple of groups",
            lambda n: n.size(filters, 0) % n.number("group", 1) == 0,
        ),
        (
            "kernel_shape is the shape of a filter behind its channels",
            lambda n: agree(n.numbers("kernel_shape"), n.dims(filters)[2:]),
        ),
        _filter_fits(filters),
    )


def _one_per_filter(index: int, filters: int) -> Fact:
    """Require one element per filter in operand ``index``."""
    return (
        "the bias has one element for each filter",
        lambda n: agree(n.dims(index), n.dims(filters)[:1]),
    )


def _scale_count_fits(n: Operands) -> bool:
    """True if there is one scale, or one per filter."""
    return n.count(4) in (1, n.size(3, 0))


def _pads_are_below_kernel(n: Operands) -> bool:
    """True if each pad is smaller than the kernel."""
    kernel = n.numbers("kernel_shape")
    pads = n.numbers("pads")
    return all(pad < size for pad, size in zip(pads, [*kernel, *kernel], strict=False))


def _grid_mode_exists(n: Operands) -> bool:
    """True if the opset of a GridSample has its mode; opset 20 renamed the modes."""
    known = ("linear", "nearest", "cubic") if n.opset >= 20 else ("bilinear", "nearest", "bicubic")
    return n.text("mode", known[0]) in known


FOUR_AXES: Fact = ("the input has 4 axes", lambda n: n.rank(0) == 4)
SPATIAL: Fact = ("the input has at least 3 axes", lambda n: n.rank(0) >= 3)

FACTS: Facts = {
    "Conv": (*_convolution(1), _one_per_filter(2, 1)),
    "ConvInteger": (
        *_convolution(1),
        ("the image has one zero point", is_single(2)),
        ("the filters have one zero point, or one each", _zero_point_count_fits),
    ),
    "QLinearConv": (
        *_convolution(3),
        _one_per_filter(8, 3),
        ("the filters have one scale, or one each", _scale_count_fits),
    ),
    "ConvTranspose": (
        AUTO_PAD,
        PADS,
        ("output_padding is from 0 to less than a stride or a dilation", _output_padding_is_small),
        ("groups are 1 or more", lambda n: n.number("group", 1) > 0),
        ("there is a filter for each channel of the image", lambda n: n.size(0, 1) == n.size(1, 0)),
        (
            "the number of channels is a multiple of groups",
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
        PADS,
        _none_below("kernel_shape", 1),
        on_or_off("storage_order"),
        ("padding is smaller than the kernel", _pads_are_below_kernel),
    ),
    "GlobalAveragePool GlobalMaxPool GlobalLpPool": (SPATIAL,),
    "LRN": (
        SPATIAL,
        ("size, the number of summed channels, is 1 or more", lambda n: n.number("size", 1) > 0),
    ),
    "MaxUnpool": (
        (
            "kernel_shape has a size for each axis",
            lambda n: n.rank(0) == len(n.numbers("kernel_shape")) + 2,
        ),
        ("there is an index for each element", lambda n: agree(n.dims(0), n.dims(1))),
        _none_below("strides", 1),
        (
            "there is a stride for each axis of the kernel",
            lambda n: len(n.numbers("strides")) == len(n.numbers("kernel_shape")),
        ),
    ),
    "DepthToSpace": (FOUR_AXES, one_of("mode", "DCR", "DCR", "CRD")),
    "SpaceToDepth": (FOUR_AXES,),
    "GridSample": (
        ("mode is one that the opset defines", _grid_mode_exists),
        one_of("padding_mode", "zeros", "zeros", "border", "reflection"),
        ("input and grid have equal ranks", lambda n: n.rank(0) == n.rank(1)),
        ("input and grid have equal batch sizes", lambda n: n.size(0, 0) == n.size(1, 0)),
        ("the grid has a coordinate for each axis", lambda n: n.size(1, -1) == n.rank(0) - 2),
    ),
    "AffineGrid": (
        (
            "theta is (N, 2, 3) for images and (N, 3, 4) for volumes",
            lambda n: n.dims(0)[1:] in ((2, 3), (3, 4)) or None in n.dims(0)[1:],
        ),
    ),
    "RoiAlign": (
        one_of("mode", "avg", "avg", "max"),
        ("samples are 0 or more", lambda n: n.number("sampling_ratio", 0) >= 0),
        ("a region has 4 numbers", lambda n: n.size(1, 1) == 4),
        ("each region has an image", lambda n: n.size(1, 0) == n.size(2, 0)),
    ),
    "NonMaxSuppression": (
        ("a box has 4 numbers", lambda n: n.size(0, 2) == 4),
        ("each box has a score", lambda n: n.size(0, 1) == n.size(1, 2)),
        on_or_off("center_point_box"),
        ("boxes and scores have equal batch sizes", lambda n: n.size(0, 0) == n.size(1, 0)),
    ),
    "Col2Im": (
        (
            "channels are a multiple of the size of a block",
            lambda n: n.size(0, 1) % max(prod(n.integers(2)), 1) == 0,
        ),
        (
            "there is a column for each position of a block",
            lambda n: n.size(0, 2) == _block_positions(n),
        ),
    ),
}
