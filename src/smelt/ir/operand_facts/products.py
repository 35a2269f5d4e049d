"""Requirements of MatMul, Gemm, Einsum, and of operators that broadcast all of their operands."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.operand_facts.operands import (
    Fact,
    Facts,
    Operands,
    Unknown,
    broadcast,
    may_broadcast,
    on_or_off,
    one_of,
    zip_known,
)
from smelt.ir.shapes.broadcast import ELEMENTWISE


def _operands_broadcast(n: Operands) -> bool:
    """True if the operands broadcast; equal shapes are tested first, at a fifth of the cost."""
    first, *others = [value.shape for value in n.node.inputs if value is not None]
    if first is not None and all(
        other is not None and _surely_broadcast(first, other) for other in others
    ):
        return True  # most nodes
    return broadcast([n.dims(index) for index in range(len(n.node.inputs))])


def _surely_broadcast(first: ir.Shape, other: ir.Shape) -> bool:
    """True if two shapes surely broadcast: they are equal, or one is empty."""
    return other is first or not other.dims or other.dims == first.dims


def _gemm_rows(n: Operands) -> int:
    """Return the number of rows of a Gemm."""
    return n.size(0, 1 if n.number("transA", 0) else 0)


def _bias_broadcasts(n: Operands) -> bool:
    """True if the bias of a Gemm broadcasts to the product."""
    return may_broadcast(n.dims(2), (_gemm_rows(n), n.size(1, 0 if n.number("transB", 0) else 1)))


def _input_terms(n: Operands) -> list[str]:
    """Return the input terms of an Einsum; raises Unknown if there is an ellipsis."""
    left = n.text("equation", "").replace(" ", "").partition("->")[0]
    if "." in left:
        raise Unknown
    return left.split(",")


def _letters_agree(n: Operands) -> bool:
    """True if each letter of an Einsum has one size, apart from sizes of 1."""
    sizes: dict[str, int] = {}
    for index, term in enumerate(_input_terms(n)):
        for letter, size in zip_known(term, n.dims(index)):
            if size not in (None, 1) and sizes.setdefault(letter, size) != size:
                return False
    return True


RANKED = "neither operand is a scalar"
BOTH_RANKED: Fact = (RANKED, lambda n: n.rank(0) > 0 and n.rank(1) > 0)
BROADCAST: Fact = (
    "the operands broadcast: sizes that meet are equal, or one of them is 1",
    _operands_broadcast,
)

FACTS: Facts = {
    " ".join(sorted({*ELEMENTWISE, "PRelu"} - {"Mod", "BitShift"})): (BROADCAST,),
    "Mod": (
        BROADCAST,
        on_or_off("fmod"),
        (
            "before opset 28, floats are divided with fmod=1",
            lambda n: n.opset >= 28 or not n.is_float(0) or n.number("fmod", 0) == 1,
        ),
    ),
    "BitShift": (BROADCAST, one_of("direction", "", "LEFT", "RIGHT")),
    "Gelu": (one_of("approximate", "none", "none", "tanh"),),
    "MatMul": (BOTH_RANKED,),
    "MatMulInteger": (
        BOTH_RANKED,
        (
            "rows have one zero point, or one each",
            lambda n: n.rank(2) != 1 or n.size(2, 0) in (1, n.size(0, -2)),
        ),
        (
            "columns have one zero point, or one each",
            lambda n: n.rank(3) != 1 or n.size(3, 0) in (1, n.size(1, -1)),
        ),
    ),
    "QLinearMatMul": ((RANKED, lambda n: n.rank(0) > 0 and n.rank(3) > 0),),
    "Gemm": (("the bias broadcasts to the product", _bias_broadcasts),),
    "Einsum": (("a letter stands for one size in all operands", _letters_agree),),
}
