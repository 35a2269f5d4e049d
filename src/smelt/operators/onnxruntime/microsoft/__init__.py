"""Operators of the domain ``com.microsoft``, which ONNX Runtime computes by its own kernels.

Each is declared like an operator of smelt: attributes, types, a NumPy reference, and a body of ONNX
operators for the forms that it supports. So smelt infers, verifies and expands models that have
them, and other targets run them. Written models keep these operators, because the runtime has
kernels for them.

The source of their meaning is ONNX Runtime: its documentation of contributed operators and its CPU
kernels. The tests compare reference and body with the kernels.
"""

from __future__ import annotations

from smelt.operators.onnxruntime.microsoft import (
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
