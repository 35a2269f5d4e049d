"""Requirements of scales and zero points of quantized numbers."""

from __future__ import annotations

from smelt.ir.operand_facts.operands import Facts, Operands, Unknown, agree


def _scale_axis(n: Operands) -> int:
    """Return the axis of per-axis scales; Unknown if there is one scale for all."""
    if n.opset < 13 or n.count(1) == 1:
        raise Unknown
    return n.number("axis", 1)


def _scale_axis_exists(n: Operands) -> bool:
    """True if the axis of the scales is one of the operand."""
    return -n.rank(0) <= _scale_axis(n) < n.rank(0)


def _scale_shape_fits(n: Operands) -> bool:
    """True if there is one scale per index of the axis.

    With blocks, scales have the shape of the operand with ceil(size / block) along the axis.
    """
    axis, block = _scale_axis(n), n.number("block_size", 0)
    if not block:
        return agree(n.dims(1), [n.dims(0)[axis]])
    blocks = [
        -(-size // block) if i == axis % n.rank(0) and size is not None else size
        for i, size in enumerate(n.dims(0))
    ]
    return agree(n.dims(1), blocks)


FACTS: Facts = {
    "QuantizeLinear DequantizeLinear": (
        ("axis is one of the input", _scale_axis_exists),
        (
            "there is one scale, one for each place of axis, or one for each block",
            _scale_shape_fits,
        ),
        (
            "zero points are as many as scales",
            lambda n: n.count(1) == n.count(2),
        ),
    ),
}
