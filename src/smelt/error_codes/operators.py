"""Operators that a target or a runner lacks."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E201": ErrorCode(
        "the target has no kernel for an operator",
        "After selection an operator is left that the target neither runs itself nor can "
        "build from others. All such operators of a model are reported together.",
        "end the model before the operator, choose another target, or add a kernel: "
        "docs/add-a-target.md",
    ),
    "E202": ErrorCode(
        "the host target lacks a kernel for these operands",
        "The host target runs the operator, but not for these element types, shapes or attributes.",
        "--target onnx",
    ),
    "E203": ErrorCode(
        "an operator that cannot be written",
        "A model is written with a body for each operator beyond ONNX, so that any runtime loads "
        "it. ONNX cannot express this operator, or the types that its body depends on are unknown.",
        "run it here by smelt.compile(model, target='host'), or keep it for smelt alone by "
        "smelt.save(model, path, keep_bare=True)",
    ),
    "E220": ErrorCode(
        "no runner has a kernel for an operator",
        "To compare results the model has to be run, and neither ONNX Runtime nor the "
        "reference evaluator can run one of its operators for its element types.",
        "install a newer onnxruntime, or compare a part of the model",
    ),
    "E221": ErrorCode(
        "no inputs can be made up",
        "An input has a type, such as an untyped or sparse tensor, for which random "
        "values make no sense.",
        "smelt.verify(a, b, inputs=[...])",
    ),
    "E230": ErrorCode(
        "the opset cannot be raised",
        "An operator of the model has no known way to the opset that is asked for, or the"
        " opset is out of range.",
        "export the model at a newer opset",
    ),
    "E231": ErrorCode(
        "the opset cannot be lowered",
        "A node has no earlier form, no function body and no wider type that says the same at the"
        " opset that is asked for. docs/opsets.md lists what each operator becomes.",
        "ask for the opset that the message names, or a later one",
    ),
    "E232": ErrorCode(
        "the IR version is too low",
        "ONNX released each opset and each element type with a version of its file format, and a"
        " reader of an earlier version does not know them.",
        "ask for a later IR version, or an earlier opset as well",
    ),
}
