"""Mistakes of smelt."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E901": ErrorCode(
        "an unexpected exception",
        "smelt made a mistake. The folder in the message holds what is needed to repeat it.",
        "report it with the reproducer",
    ),
    "E902": ErrorCode(
        "a broken graph",
        "A value is read before it is written, or a node is in no graph, inside smelt.",
        "report it with the model",
    ),
    "E903": ErrorCode(
        "rewriting does not end",
        "Rules undo each other, so the budget of rewrites ran out.",
        "leave one of the named rules' passes out of the pipeline, and report the model",
    ),
    "E904": ErrorCode(
        "a rule reads what it replaces",
        "The replacement that a rule built reads the result that it replaces.",
        "report the rule to its author",
    ),
    "E905": ErrorCode(
        "a broken invariant",
        "A pass left the graph in a state that breaks the rules of the IR.",
        "report it with the model and the pipeline",
    ),
    "E907": ErrorCode(
        "a shape rule fails",
        "The rule that infers the shapes of an operator stumbled over a node of the model.",
        "report it with the model",
    ),
    "E908": ErrorCode(
        "the reference kernels of onnx have changed",
        "smelt folds constants by the kernels of onnx's reference evaluator, and the installed "
        "onnx has another way to call them.",
        "install a version of onnx that smelt is tested with",
    ),
    "E910": ErrorCode(
        "a lowering broke its promise",
        "A JAX lowering gave another number or type of results than its equation has.",
        "report it with the function",
    ),
    "E911": ErrorCode(
        "a pipeline that differs from run to run",
        "A bisection ran the same rewrites twice and got two results.",
        "report it with the model and the pipeline",
    ),
    "E960": ErrorCode(
        "a broken program",
        "An instruction lacks an operand or attribute that its C kernel needs.",
        "report it with the model",
    ),
    "E961": ErrorCode(
        "generated C does not compile",
        "The C compiler refuses the code that smelt generated.",
        "check CC and its flags, then report it with the model",
    ),
    "E962": ErrorCode(
        "a compiled model failed",
        "The compiled model returned an error status.",
        "report it with the model and its inputs",
    ),
    "E963": ErrorCode(
        "a broken plan",
        "A phase of a target reads a value before it is written, or gives the same memory to two"
        " values that are live at once. --verify-phases and the conformance suite find this.",
        "report it with the model, or mend the phase if the target is yours",
    ),
    "E964": ErrorCode(
        "a kernel that loses fused steps",
        "An operator was fused into another, such as a Relu into a convolution, and the kernel "
        "that was chosen wrote C that does not compute it.",
        "let the kernel compute the steps, or declare that it does not; if the kernel is smelt's, "
        "report it with the model",
    ),
}
