"""Instructions on quantized numbers that ONNX has no operator for.

``LOOKUP``: inputs x of bytes and a table of 256, which the byte as it lies in memory selects from.
``ADD`` and ``MUL``: inputs a and b of bytes; attributes ``a_scale``, ``a_zero``, ``b_scale``,
``b_zero``, ``y_scale``, ``y_zero``. ``MEAN``: the mean over the last elements of x, as many as the
output has fewer; ``x_scale``, ``x_zero``, ``y_scale``, ``y_zero``. ``SOFTMAX``: along the last
dim; inputs x of bytes and a table of 256 floats, the exponential of the byte as it lies in memory,
or, if ``from_max`` is 1, of the byte less the largest of its row, in steps from -255 to 0;
``y_scale``, ``y_zero``.
"""

from __future__ import annotations

LOOKUP = "smelt::Lookup"
ADD = "smelt::QuantizedAdd"
MUL = "smelt::QuantizedMul"
MEAN = "smelt::QuantizedMean"
SOFTMAX = "smelt::QuantizedSoftmax"
