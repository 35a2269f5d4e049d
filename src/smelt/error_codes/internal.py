"""Internal errors of smelt."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E901": ErrorCode(
        "an unexpected exception",
        "smelt failed by a mistake of its own. The folder in the message reproduces the failure.",
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
        "remove the pass of one of the named rules from the pipeline, and report the model",
    ),
    "E904": ErrorCode(
        "a rule reads the result that it replaces",
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
        "The function that infers the shapes of an operator raised an exception for a node.",
        "report it with the model",
    ),
    "E908": ErrorCode(
        "the reference kernels of onnx have changed",
        "smelt folds constants by the kernels of onnx's reference evaluator, and cannot call those "
        "of the installed onnx.",
        "install a version of onnx that smelt is tested with",
    ),
    "E910": ErrorCode(
        "a lowering returned wrong results",
        "A JAX lowering returned another number of results, or other types, than its equation.",
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
        "report it with the model; if the target is yours, correct the phase",
    ),
    "E964": ErrorCode(
        "a kernel that loses fused steps",
        "An operator was fused into another, such as a Relu into a convolution, but the C of the "
        "chosen kernel does not compute the fused operator.",
        "let the kernel compute the fused steps, or declare that it cannot; if the kernel is "
        "smelt's, report it with the model",
    ),
}
