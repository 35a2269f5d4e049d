"""Instructions on quantized numbers without an ONNX operator.

``LOOKUP``: inputs x of bytes and a table of 256, indexed by the byte's value in memory. ``ADD`` and
``MUL``: inputs a and b of bytes; attributes ``a_scale``, ``a_zero``, ``b_scale``, ``b_zero``,
``y_scale``, ``y_zero``. ``MEAN``: the mean over the trailing dims that the output lacks;
``x_scale``, ``x_zero``, ``y_scale``, ``y_zero``. ``SOFTMAX``: along the last dim; inputs x of bytes
and a table of 256 floats: the exponential of the byte's value in memory or, if ``from_max`` is 1,
of the byte minus the largest of its row, from -255 to 0; ``y_scale``, ``y_zero``.
"""

from __future__ import annotations

LOOKUP = "smelt::Lookup"
ADD = "smelt::QuantizedAdd"
MUL = "smelt::QuantizedMul"
MEAN = "smelt::QuantizedMean"
SOFTMAX = "smelt::QuantizedSoftmax"
