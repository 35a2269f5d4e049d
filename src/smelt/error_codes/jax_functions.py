"""JAX functions: what tracing and lowering refuse."""

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
        "An expression over symbolic dims is not understood, or cannot be computed from "
        "the inputs.",
        "give some input a dim that is exactly the symbol",
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
        "This version of JAX gives a primitive a parameter that its lowering does not "
        "know, so its meaning may have changed.",
        "use the version of JAX that smelt names in its requirements",
    ),
    "E107": ErrorCode(
        "an opset that cannot be traced to",
        "JAX functions are traced to a range of opsets.",
        "--opset 23",
    ),
    "E108": ErrorCode(
        "wrong names of inputs or outputs",
        "The names given to inputs and outputs are too few, too many, used twice, or "
        "those of values that do not exist.",
        'smelt.trace(fn, "f32[B,8]", input_names=["x"], output_names={"out": "logits"})',
    ),
    "E109": ErrorCode(
        "arguments that a function does not take",
        "The inputs and static values do not fit the parameters of the function.",
        'smelt.trace(fn, "f32[B,8]", kwargs={"mask": "bool[B]"}, static={"train": False})',
    ),
    "E110": ErrorCode(
        "arrays that cannot be inputs",
        "No array of the function has such a name, or the function reaches it in a way "
        "that cannot be followed.",
        'smelt.trace(model, "f32[B,8]", input_params=["layers_*_kernel"])',
    ),
    "E111": ErrorCode(
        "calls that cannot become functions",
        "Calls of Python functions, of methods and of classes that define __call__ can become ONNX "
        "functions, in a domain that has no operators.",
        'smelt.trace(model, "f32[B,8]", functions=[Block])',
    ),
    "E112": ErrorCode(
        "a symbolic size that has to be known",
        "The traced function compares symbolic sizes, the outcome depends on the sizes, and smelt "
        "cannot make cases of one model of it. Or Python needs the size as a number, as int and "
        "range do.",
        'smelt.trace(fn, "f32[S]", constraints=["S >= 2"])',
    ),
    "E113": ErrorCode(
        "the traced function fails",
        "The function raised an exception, or returned something that is no array. The message "
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
