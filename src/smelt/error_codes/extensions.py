"""Usage of what packages add: operators, kernels, lowerings, passes, targets."""

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
        "The installed package that registers it fails when it is imported, or what its entry "
        "point names is of another kind.",
        "upgrade or uninstall the package that the message names",
    ),
    "E640": ErrorCode(
        "two operators of one name",
        "Two declarations share a domain and a name.",
        "rename one of them, or uninstall its package",
    ),
    "E641": ErrorCode(
        "not an operator",
        "An entry point of `smelt.operators` names something that is no Operator.",
        "let the entry point name an Operator or a sequence of them",
    ),
    "E644": ErrorCode(
        "an operator declared wrong",
        "A field of an Operator is of another type, a name is no name, or a function takes other"
        " arguments than smelt gives it. It is refused where it is declared, so that it cannot"
        " break the compile of a model that holds it.",
        "declare it as docs/add-an-operator.md shows",
    ),
    "E645": ErrorCode(
        "a body that needs itself",
        "The body of an operator beyond ONNX holds that operator again, so it has no end.",
        "build the body of ONNX operators, or of extension operators that have bodies",
    ),
    "E646": ErrorCode(
        "an operator that breaks its own declaration",
        "The shape rule, the reference or the body of an operator returned something that its"
        " declaration does not allow, or raised an error of Python.",
        "let `infer` return one Result an output, and raise ValueError for wrong inputs",
    ),
    "E647": ErrorCode(
        "a C kernel that is none",
        "An entry point of `smelt.c.kernels` names no CKernel, or a CKernel has no example, neither"
        " or both of a text and a kernel, or a text that names neither an input nor an attribute."
        " Or the kernel of a package raised an error of Python, or a C compiler refuses what it"
        " writes.",
        "let it name a CKernel of an operator of your own",
    ),
    "E648": ErrorCode(
        "a step at no point of a compile",
        "A target has steps of its own at a point that no phase has.",
        'around={"after schedule": (my_step,)}',
    ),
    "E649": ErrorCode(
        "a target declared wrong",
        "A field of a Target is of another type, a function takes other arguments than smelt gives"
        " it, or a phase returned something else than it must. It is told where it stands, so that"
        " it does not show in the middle of a compile.",
        "declare it as docs/add-a-target.md shows",
    ),
    "E650": ErrorCode(
        "two lowerings of one primitive",
        "Two packages register a lowering for the same JAX primitive.",
        "uninstall one of the packages",
    ),
    "E651": ErrorCode(
        "two kernels or lowerings of one operator",
        "Two functions are registered to compute or to lower the same operator.",
        "rename one of the operators, or uninstall the package that registers it",
    ),
    "E652": ErrorCode(
        "two bindings of one function",
        "Two plugins patch the same function while tracing.",
        "uninstall one of the packages",
    ),
    "E653": ErrorCode(
        "a plug-in fails",
        "A phase, a rule or another function of an installed package raised an error of Python, or"
        " returned what it must not. The message names the function, the file and the line.",
        "report it to the authors of the package",
    ),
}
