"""Errors about results that differ."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E700": ErrorCode(
        "the interfaces differ",
        "Inputs or outputs differ in number, order, name, element type, rank or fixed size.",
        "`smelt diff a.onnx b.onnx`",
    ),
    "E701": ErrorCode(
        "a pass changed a result",
        "With --verify each, smelt compares the results after each pass with the results before "
        "it and with the results of the source. Here the error exceeds the error that the pass "
        "declares, or that all passes so far declare together. Exact passes are compared bit by "
        "bit.",
        "run the reproducer, which names the rewrite; remove the pass until it is corrected",
    ),
    "E702": ErrorCode(
        "the results differ",
        "Two computations gave different results on the same inputs, and the difference is larger"
        " than rounding explains or the tolerance allows.",
        "`smelt bisect model.onnx` finds the rewrite at fault",
    ),
    "E705": ErrorCode(
        "a target does not conform",
        "A target failed a case of the conformance suite.",
        "the message names the case; docs/add-a-target.md says what the suite requires",
    ),
    "E706": ErrorCode(
        "a graph of another structure",
        "A model does not have the operators that a test expects, in that order and with those"
        " shapes.",
        "`smelt inspect model.onnx --snippet` prints the operators of the model",
    ),
}
