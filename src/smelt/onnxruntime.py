"""Sessions in the form of ONNX Runtime's Python API, which run on the target ``host``.

``import smelt.onnxruntime as ort`` stands in for ``import onnxruntime as ort`` in programs that run
models on a CPU. ``docs/for-onnx-servers.md`` lists what differs.
"""

from __future__ import annotations

from smelt.distribution import VERSION
from smelt.sessions.binding import IOBinding
from smelt.sessions.options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from smelt.sessions.ports import ModelMetadata, NodeArg
from smelt.sessions.process import (
    get_all_providers,
    get_available_providers,
    get_build_info,
    get_device,
    get_version_string,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
)
from smelt.sessions.session import InferenceSession
from smelt.sessions.value import OrtValue

__version__ = VERSION

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "__version__",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]
