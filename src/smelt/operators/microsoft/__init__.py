"""Operators of the domain ``com.microsoft``, which ONNX Runtime computes by kernels of its own.

Each is declared like an operator of ours: attributes, types, a NumPy reference, and a body of ONNX
operators for the forms that it covers. So models that hold them are inferred, verified, expanded
and run by other targets. Written they stay what they are, since the runtime knows them.
The meaning is that of ONNX Runtime's own documentation of contributed operators and its CPU
kernels, against which the tests hold both the reference and the body.
"""

from __future__ import annotations

from smelt.operators.microsoft import (
    activations,
    attention,
    embedding,
    fused,
    linear,
    norms,
    packed,
    packed_floats,
    products,
    quantized,
    quantized_elements,
    quantized_images,
    quantized_products,
    quantized_recurrence,
    rotary,
    self_attention,
)

OPERATORS = (
    *activations.OPERATORS,
    *attention.OPERATORS,
    *embedding.OPERATORS,
    *fused.OPERATORS,
    *linear.OPERATORS,
    *norms.OPERATORS,
    *packed.OPERATORS,
    *packed_floats.OPERATORS,
    *products.OPERATORS,
    *quantized.OPERATORS,
    *quantized_elements.OPERATORS,
    *quantized_images.OPERATORS,
    *quantized_products.OPERATORS,
    *quantized_recurrence.OPERATORS,
    *rotary.OPERATORS,
    *self_attention.OPERATORS,
)
