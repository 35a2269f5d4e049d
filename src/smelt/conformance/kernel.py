"""Compare a C kernel of another package with the reference of its operator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.compiler import compile_model
from smelt.errors import Mismatch, SmeltError, UsageError
from smelt.native.kernels.foreign import CKernel, add
from smelt.runtime.interface import Value
from smelt.targets.base import Artifact

REFUSED_BY_COMPILER = "E961"


def check_kernel(kernel: CKernel) -> None:
    """Build ``kernel`` with a C compiler and compare its examples with the operator's reference.

    Raises Mismatch E705 for different numbers (NaN equals NaN), UsageError E647 for C that does not
    compile.
    """
    add(kernel)
    operator = kernel.operator
    for arrays, attributes in kernel.examples:
        all_attributes = {a.name: attributes.get(a.name, a.default) for a in operator.attributes}
        absent = (None,) * (len(operator.inputs) - len(arrays))
        expected = operator.reference((*arrays, *absent), all_attributes)
        inputs = [
            ir.Value(name=name.rstrip("?"), type=ir.TensorType(dtype), shape=ir.Shape(array.shape))
            for name, array in zip(operator.inputs, arrays, strict=False)
            for dtype in [ir.DataType.from_numpy(array.dtype)]
        ]
        node_attributes = [ir.convenience.convert_attribute(*pair) for pair in attributes.items()]
        node = ir.Node(
            operator.domain,
            operator.name,
            inputs,
            node_attributes,
            num_outputs=len(operator.outputs),
        )
        imports = {"": 21, operator.domain: operator.version}
        for name, value, result in zip(operator.outputs, node.outputs, expected, strict=True):
            value.name = f"{name.rstrip('?')}_out"
            value.type = ir.TensorType(ir.DataType.from_numpy(result.dtype))
            value.shape = ir.Shape(result.shape)
        graph = ir.Graph(inputs, node.outputs, nodes=[node], opset_imports=imports, name="kernel")
        artifact = compile_model(ir.Model(graph, ir_version=10), target="c")
        for computed, reference in zip(_run(kernel, artifact, arrays), expected, strict=True):
            assert isinstance(computed, np.ndarray)
            if not np.allclose(computed, reference, rtol=1e-5, atol=1e-6, equal_nan=True):
                raise Mismatch(
                    "E705",
                    f"the C kernel of {operator.domain}.{operator.name} computes other numbers "
                    "than its reference",
                    why=f"the kernel returns {computed.reshape(-1)[:4]}, the reference "
                    f"{np.asarray(reference).reshape(-1)[:4]}",
                    fix="correct the kernel, or the reference of the operator",
                )


def _run(kernel: CKernel, artifact: Artifact, arrays: Sequence[np.ndarray]) -> Sequence[Value]:
    """Return the results of ``artifact``, which calls ``kernel``; raises UsageError E647 if the C
    does not compile.
    """
    try:
        return artifact(*arrays)
    except SmeltError as error:
        if error.code != REFUSED_BY_COMPILER:
            raise
        raise UsageError(
            "E647",
            f"the C kernel of {kernel.operator.domain}.{kernel.operator.name} does not compile",
            at=f"text {kernel.text!r}" if kernel.text else f"kernel {kernel.kernel!r}",
            why=error.why,
            fix="correct the C code; `smelt compile --target c` writes it for a model that uses the"
            " operator",
        ) from error
