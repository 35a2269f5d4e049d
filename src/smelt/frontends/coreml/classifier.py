"""Reader of the classifier that ends a program: it returns the label with the best probability."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import reads


@reads("classify")
def _classify(call: Call) -> list[ir.Value]:
    """Return the label and the probabilities.

    Core ML returns the probabilities as a dictionary by label; the Model returns them as the
    tensor, in the order of the labels.
    """
    probabilities = call.value("probabilities")
    known = call.known("classes")
    if known is None or isinstance(known, ir.Value):
        raise call.refused("its classes are computed, where Core ML asks for a constant")
    items = known.value if isinstance(known.value, list) else [known]
    labels = np.concatenate([np.asarray(item.value).reshape(-1) for item in items])
    flat = call.op("Reshape", probabilities, call.ints([-1]))
    best = call.op("ArgMax", flat, axis=0, keepdims=0)
    if labels.dtype.kind == "U":
        texts = [text.encode() for text in labels.tolist()]
        table = call.builder.tensor(ir.StringTensor(texts, shape=ir.Shape([len(texts)])))
    else:
        table = call.scope.shared.constant(labels.astype(np.int64))
    return [call.op("Gather", table, best, axis=0), probabilities]
