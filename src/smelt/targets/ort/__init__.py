"""The ``ort`` target: ONNX for ONNX Runtime on the CPU, in the forms that are fastest there.

Forms are chosen by a table of measured times (``choices.py``, ``costs.py``), not because a fused
operator exists: several fused operators are slower than what they replace.
"""

from __future__ import annotations

from smelt.operators.onnxruntime.microsoft import OPERATORS
from smelt.targets.base import Target
from smelt.targets.ort.artifact import write_model
from smelt.targets.ort.integer_products import are_exact
from smelt.targets.ort.measure import tune
from smelt.targets.ort.options import Options
from smelt.targets.ort.saved import open_folder
from smelt.targets.ort.select import rules_for
from smelt.targets.ort.weights import finish_weights

PASSES = "widen-half,default"
"""The runtime has few kernels for 16-bit floats, and float32 is as fast. With casts only at the
edges of the model, more fusions apply; other models skip the second pipeline run."""
if are_exact():  # uint8 has more kernels than int8, but their products saturate on some CPUs
    PASSES += ",unsigned-activations"

ort = Target(
    name="ort",
    summary="ONNX for ONNX Runtime on the CPU, by measured costs",
    emit=write_model,
    operators=OPERATORS,
    passes=PASSES,
    select=rules_for,
    options=Options,
    around={"after select": (finish_weights,)},
    functions=True,
    onnx_runtime=True,
    open=open_folder,
    tune=tune,
)
