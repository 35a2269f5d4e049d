"""Products and rows of packed weights of a few bits: their NumPy references."""

from __future__ import annotations

from smelt import operators
from smelt.operators.onnxruntime.microsoft.declared import DOMAIN
from smelt.targets.host.kernels.kernel import Call, Step, kernel
from smelt.targets.host.kernels.reference import by_reference


@kernel("MatMulNBits", "GatherBlockQuantized")
def packed(call: Call) -> Step:
    """Return the step that unpacks the weights as floats; the C engine reads them packed."""
    operator = operators.find(DOMAIN, call.op)
    assert operator is not None
    return by_reference(operator)(call)
