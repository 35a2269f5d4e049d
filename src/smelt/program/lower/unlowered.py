"""Reasons why operators have no lowering, and advice for users."""

from __future__ import annotations

from collections.abc import Mapping

_RANDOM = (
    "it draws random numbers, of which ONNX defines only the distribution",
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
        "it decodes image files, whose sizes are known only after decoding",
        "decode images outside, and give the model their pixels",
    ),
}
"""The reason and the advice by operator."""


def why_unlowered(op_type: str) -> tuple[str, str]:
    """Return the reason why an ONNX operator has no lowering, and advice."""
    return REASONS.get(op_type, _OTHERWISE)
