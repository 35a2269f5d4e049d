"""Errors in the operators, kernels, lowerings, passes and targets that packages add."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E605": ErrorCode(
        "two passes of one name",
        "Two installed packages register a pass under the same name.",
        "uninstall one of the packages",
    ),
    "E610": ErrorCode(
        "two targets of one name",
        "Two installed packages register a target under the same name.",
        "uninstall one of the packages",
    ),
    "E615": ErrorCode(
        "an extension cannot be loaded",
        "The import of the installed package that registers it fails, or its entry point names an "
        "object of another kind.",
        "upgrade or uninstall the package that the message names",
    ),
    "E640": ErrorCode(
        "two operators of one name",
        "Two declarations share a domain and a name.",
        "rename one of them, or uninstall its package",
    ),
    "E641": ErrorCode(
        "not an operator",
        "An entry point of `smelt.operators` names an object that is not an Operator.",
        "let the entry point name an Operator or a sequence of them",
    ),
    "E644": ErrorCode(
        "an operator declared wrong",
        "A field of an Operator has the wrong type, a name is invalid, or a function does not "
        "accept"
        " the arguments that smelt passes. smelt refuses the declaration, because it would fail"
        " later, in the compile of a model with that operator.",
        "declare it as docs/add-an-operator.md shows",
    ),
    "E645": ErrorCode(
        "a body that contains its own operator",
        "The body of an operator beyond ONNX contains that operator, so inlining would never end.",
        "build the body of ONNX operators, or of extension operators that have bodies",
    ),
    "E646": ErrorCode(
        "an operator that breaks its own declaration",
        "The shape rule, the reference or the body of an operator returned something that its"
        " declaration does not allow, or raised a Python exception.",
        "let `infer` return one Result per output, and raise ValueError for wrong inputs",
    ),
    "E647": ErrorCode(
        "an invalid C kernel",
        "An entry point of `smelt.c.kernels` names an object of another class. Or its CKernel"
        " lacks an example, has both or neither of `text` and `kernel`, or has a `text` that reads"
        " no input and no attribute. Or its `kernel` raised a Python exception or wrote C that does"
        " not compile.",
        "let the entry point name a CKernel for an operator of your own",
    ),
    "E648": ErrorCode(
        "a step at an unknown point of a compile",
        "A target adds steps at a point that does not exist in its phases.",
        'around={"after schedule": (my_step,)}',
    ),
    "E649": ErrorCode(
        "a target declared wrong",
        "A field of a Target has the wrong type, a function does not accept the arguments that "
        "smelt"
        " passes, or a phase returned a wrong type. smelt checks the declaration first, so that the"
        " error names the declaration and not a later step of a compile.",
        "declare it as docs/add-a-target.md shows",
    ),
    "E650": ErrorCode(
        "two lowerings of one primitive",
        "Two packages register a lowering for the same JAX primitive.",
        "uninstall one of the packages",
    ),
    "E651": ErrorCode(
        "two kernels or lowerings of one operator",
        "Two packages register a function that computes or lowers the same operator.",
        "rename one of the operators, or uninstall the package that registers it",
    ),
    "E652": ErrorCode(
        "two bindings of one function",
        "Two plugins patch the same function while tracing.",
        "uninstall one of the packages",
    ),
    "E653": ErrorCode(
        "a plug-in fails",
        "A phase, a rule or another function of an installed package raised a Python exception, or"
        " returned a value that is not allowed. The message names the function, file and line.",
        "report it to the authors of the package",
    ),
}
