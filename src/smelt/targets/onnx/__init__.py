"""The ``onnx`` target: a portable ONNX file.

Extension operators that ONNX can express are written as standard operators, so the file loads in
any ONNX runtime.
"""

from __future__ import annotations

from smelt.targets.base import Target
from smelt.targets.onnx.emit import write_model
from smelt.targets.onnx.options import Options
from smelt.targets.onnx.saved import open_folder

onnx = Target(
    name="onnx",
    summary="portable ONNX, for any ONNX runtime",
    emit=write_model,
    options=Options,
    functions=True,
    onnx_runtime=True,
    open=open_folder,
)
