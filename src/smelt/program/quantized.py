"""Instructions on quantized numbers that ONNX has no operator for.

``LOOKUP``: inputs x of bytes and a table of 256, which the byte as it lies in memory selects from.
``ADD`` and ``MUL``: inputs a and b of bytes; attributes ``a_scale``, ``a_zero``, ``b_scale``,
``b_zero``, ``y_scale``, ``y_zero``. ``MEAN``: the mean over the last elements of x, as many as the
output has fewer; ``x_scale``, ``x_zero``, ``y_scale``, ``y_zero``.
"""

from __future__ import annotations

LOOKUP = "smelt::Lookup"
ADD = "smelt::QuantizedAdd"
MUL = "smelt::QuantizedMul"
MEAN = "smelt::QuantizedMean"
