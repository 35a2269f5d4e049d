"""Errors about operators that a target or a runtime lacks."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E201": ErrorCode(
        "the target has no kernel for an operator",
        "After selection the model still has an operator that the target neither runs nor "
        "replaces by others. All such operators are reported together.",
        "cut the model before the operator, choose another target, or add a kernel: "
        "docs/add-a-target.md",
    ),
    "E202": ErrorCode(
        "the host target lacks a kernel for these operands",
        "The host target runs the operator, but not for these element types, shapes or attributes.",
        "--target onnx",
    ),
    "E203": ErrorCode(
        "an operator that cannot be written",
        "A saved model has a function body for each operator beyond ONNX, so that any runtime can "
        "load it. ONNX cannot express this operator, or the types that its body depends on are "
        "unknown.",
        "run it here by smelt.compile(model, target='host'), or keep it for smelt alone by "
        "smelt.save(model, path, keep_bare=True)",
    ),
    "E220": ErrorCode(
        "no runtime here has a kernel for an operator",
        "To compare results smelt runs the model. Neither ONNX Runtime nor the reference evaluator "
        "has a kernel for one of its operators and element types.",
        "install a newer onnxruntime, or compare a part of the model",
    ),
    "E221": ErrorCode(
        "an input without random values",
        "An input has a type for which smelt cannot draw random values, such as an untyped or "
        "sparse tensor.",
        "smelt.verify(a, b, inputs=[...])",
    ),
    "E230": ErrorCode(
        "the opset cannot be raised",
        "smelt cannot convert an operator of the model to the requested opset, or the opset is out"
        " of range.",
        "export the model at a newer opset",
    ),
    "E231": ErrorCode(
        "the opset cannot be lowered",
        "A node has no earlier form, no function body and no wider type with the same meaning at"
        " the requested opset. docs/opsets.md lists what each operator becomes.",
        "ask for the opset that the message names, or a later one",
    ),
    "E232": ErrorCode(
        "the IR version is too low",
        "ONNX released each opset and each element type with a version of its file format, and a"
        " reader of an earlier version does not know them.",
        "ask for a later IR version, or an earlier opset as well",
    ),
}
