"""Errors of tracing and lowering JAX functions."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E101": ErrorCode(
        "a JAX primitive has no ONNX lowering",
        "The traced function uses primitives that smelt cannot express in ONNX. All of "
        "them are reported together, with the lines of source that use them.",
        "compute it outside the traced function, or register a lowering: docs/add-a-lowering.md",
    ),
    "E102": ErrorCode(
        "a use of a primitive is not supported",
        "The primitive has a lowering, but not for these parameters, element types or shapes.",
        "rewrite the call as the message says, or compute it outside the traced function",
    ),
    "E103": ErrorCode(
        "a symbolic size cannot be computed",
        "smelt cannot read an expression over symbolic dims, or cannot compute it from the sizes "
        "of the inputs.",
        "give one input a dim that is exactly the symbol",
    ),
    "E104": ErrorCode(
        "wrong input specs",
        "The types of the inputs of a JAX function, or the constraints on their dims, are"
        " malformed or contradict each other.",
        "smelt convert pkg.mod:fn --input 'f32[B,28,28,1]' -o fn.onnx",
    ),
    "E105": ErrorCode(
        "an element type that ONNX lacks",
        "An input, an output or an intermediate value has an element type for which ONNX "
        "has no operators.",
        "convert it to a type that ONNX has where it enters or leaves the function",
    ),
    "E106": ErrorCode(
        "a primitive has an unknown parameter",
        "This version of JAX passes a parameter that the primitive's lowering does not "
        "know, so the meaning of the primitive may have changed.",
        "install the version of JAX in smelt's requirements",
    ),
    "E107": ErrorCode(
        "an opset that cannot be traced to",
        "smelt writes JAX functions only at certain opsets; the message names the range.",
        "--opset 23",
    ),
    "E108": ErrorCode(
        "wrong names of inputs or outputs",
        "There are too few or too many names of inputs or outputs, a name occurs twice, or a name "
        "belongs to no input or output.",
        'smelt.trace(fn, "f32[B,8]", input_names=["x"], output_names={"out": "logits"})',
    ),
    "E109": ErrorCode(
        "arguments that do not fit a function",
        "The inputs and static values do not fit the parameters of the function.",
        'smelt.trace(fn, "f32[B,8]", kwargs={"mask": "bool[B]"}, static={"train": False})',
    ),
    "E110": ErrorCode(
        "arrays that cannot be inputs",
        "No array of the function matches a name or a pattern of `input_params`, or the function "
        "also holds the array in a place where smelt cannot replace it.",
        'smelt.trace(model, "f32[B,8]", input_params=["layers_*_kernel"])',
    ),
    "E111": ErrorCode(
        "calls that cannot become functions",
        "Only calls of Python functions, of methods and of classes that define __call__ can become "
        "ONNX functions. Their namespace must not be the domain of other operators.",
        'smelt.trace(model, "f32[B,8]", functions=[Block])',
    ),
    "E112": ErrorCode(
        "a symbolic size that has to be known",
        "The traced function compares symbolic sizes, the answer depends on the sizes, and smelt "
        "cannot put both branches into one model. Or Python needs the size as a number, for "
        "example for int and range.",
        'smelt.trace(fn, "f32[S]", constraints=["S >= 2"])',
    ),
    "E113": ErrorCode(
        "the traced function fails",
        "The function raised an exception, or returned an object that is not an array. The message "
        "names the innermost line of your own code; in Python, `__cause__` is the exception.",
        "call the function with arrays, as JAX does, to see the whole traceback",
    ),
    "E115": ErrorCode(
        "wrong abstract weights",
        "Abstract weights get their numbers from a checkpoint later. They must be arrays of fixed "
        "sizes, in an argument of the function or inside the function.",
        'smelt.trace(model.apply, shapes, "f32[B,8]", weights=["variables"])',
    ),
}
