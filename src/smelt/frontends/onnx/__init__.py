"""The ONNX frontend: read models from files, bytes or protobuf, and write them.

Models come from untrusted sources. Every claim of a model is checked here, before a pass or a
runtime sees it, and no file outside the model's folder is ever read.
"""

from __future__ import annotations

from smelt.frontends.onnx.check import check_model
from smelt.frontends.onnx.load import adopt, bring_to_opset, clone, load
from smelt.frontends.onnx.save import save, to_proto, write
from smelt.ir.defaults import restore_defaults, set_aside_defaults
from smelt.ir.opsets.raise_opset import raise_opset

__all__ = [
    "adopt",
    "bring_to_opset",
    "check_model",
    "clone",
    "load",
    "raise_opset",
    "restore_defaults",
    "save",
    "set_aside_defaults",
    "to_proto",
    "write",
]
