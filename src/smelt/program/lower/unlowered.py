"""Reasons why operators have no lowering, and advice for users."""

from __future__ import annotations

from collections.abc import Mapping

_RANDOM = (
    "it draws random numbers, of which ONNX says nothing but how they are distributed",
    "draw them outside, and make them an input of the model",
)
_SEQUENCE = (
    "it makes or reads a sequence of tensors, for which no memory can be planned",
    "export the model with tensors: a loop unrolled, or its results stacked",
)
_OPTIONAL = (
    "whether there is a value is decided while the model runs",
    "export the model for inputs that are always given",
)
_OTHERWISE = (
    "no lowering is registered for this operator",
    "end the graph before it, or use the target 'onnx'",
)

REASONS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("RandomUniform", "RandomUniformLike"), _RANDOM),
    **dict.fromkeys(("RandomNormal", "RandomNormalLike"), _RANDOM),
    **dict.fromkeys(("Bernoulli", "Multinomial"), _RANDOM),
    **dict.fromkeys(("SequenceConstruct", "SequenceEmpty", "SplitToSequence"), _SEQUENCE),
    **dict.fromkeys(("SequenceInsert", "SequenceErase", "SequenceAt"), _SEQUENCE),
    **dict.fromkeys(("SequenceLength", "SequenceMap", "ConcatFromSequence"), _SEQUENCE),
    "Optional": _OPTIONAL,
    "ImageDecoder": (
        "it reads files of images, whose sizes are found as they are decoded",
        "decode images outside, and give the model their pixels",
    ),
}
"""Operator to (why it is refused, what helps)."""


def why_unlowered(op_type: str) -> tuple[str, str]:
    """Return (why an ONNX operator without a lowering is refused, what helps)."""
    return REASONS.get(op_type, _OTHERWISE)
