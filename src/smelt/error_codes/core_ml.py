"""Errors of reading Core ML programs."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E120": ErrorCode(
        "an operator of Core ML that smelt cannot read",
        "A Core ML program uses operators that smelt cannot express in ONNX. All of them are "
        "reported together.",
        "convert the source model without them: docs/for-core-ml.md lists all operators",
    ),
    "E121": ErrorCode(
        "a use of a Core ML operator that smelt cannot read",
        "smelt reads the operator, but not with these parameters, element types or open sizes.",
        "convert the source model as the message says",
    ),
    "E122": ErrorCode(
        "a Core ML model of another type",
        "The file holds a neural network of the old format, a tree ensemble or another model of "
        "Core ML. smelt reads ML Programs, which exist since iOS 15.",
        "ct.convert(model, convert_to='mlprogram')",
    ),
    "E123": ErrorCode(
        "a function that the package lacks",
        "The part of the path behind # names a function that the package does not have.",
        "smelt inspect model.mlpackage#main",
    ),
}
