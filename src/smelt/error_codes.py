"""Every error code, explained: what ``smelt explain E101`` prints and ``docs/errors.md`` lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ErrorCode(NamedTuple):
    """A code in words: a title, what it means, and an example of a way out."""

    title: str
    meaning: str
    fix: str


FAMILIES: Mapping[str, str] = {
    "E1": "JAX functions",
    "E2": "operators that a target or a runner lacks",
    "E3": "invalid models",
    "E4": "limits of a target",
    "E5": "resource limits",
    "E6": "usage",
    "E7": "results that differ",
    "E9": "mistakes of smelt",
}
"""What the first digit says."""

CODES: Mapping[str, ErrorCode] = {
    "E201": ErrorCode(
        "the target has no kernel for an operator",
        "After selection an operator is left that the target neither runs itself nor can build "
        "from others. All such operators of a model are reported together.",
        "end the model before the operator, choose another target, or add a kernel: "
        "docs/add-a-target.md",
    ),
    "E220": ErrorCode(
        "no runner has a kernel for an operator",
        "To compare results the model has to be run, and neither ONNX Runtime nor the reference "
        "evaluator can run one of its operators for its element types.",
        "install a newer onnxruntime, or compare a part of the model",
    ),
    "E221": ErrorCode(
        "no inputs can be made up",
        "An input has a type, such as an untyped or sparse tensor, for which random values make "
        "no sense.",
        "smelt.verify(a, b, inputs=[...])",
    ),
    "E310": ErrorCode(
        "not ONNX text",
        "The text of a model does not follow the textual syntax of ONNX.",
        "compare it with the examples in docs/add-a-pass.md",
    ),
    "E320": ErrorCode(
        "the model is refused",
        "A runner does not load the model, because it breaks the ONNX specification.",
        "`smelt inspect model.onnx`, then export the model anew",
    ),
    "E321": ErrorCode(
        "the model fails as it runs",
        "The model loads, but an operator meets inputs that it does not allow, for instance an "
        "index beyond its table or shapes that do not fit at the chosen sizes.",
        "--dim B=2, or give inputs that the model accepts",
    ),
    "E330": ErrorCode(
        "an extension operator is used wrongly",
        "A node of a domain beyond ONNX has an attribute that is missing, unknown or of another "
        "type than its declaration says.",
        "export the model with the version of smelt that reads it",
    ),
    "E401": ErrorCode(
        "the target needs fixed shapes",
        "The target plans all memory before it runs, so every dim has to be a number.",
        "--dim B=1",
    ),
    "E402": ErrorCode(
        "the target lacks an element type",
        "A value has an element type that the target cannot hold.",
        "cast inputs and weights before compiling",
    ),
    "E403": ErrorCode(
        "the target does not take this opset",
        "The ONNX opset of the model is outside the range of the target.",
        "--opset 21",
    ),
    "E510": ErrorCode(
        "out of memory",
        "A run asked for more memory than there is.",
        "run at a smaller size: --dim B=1",
    ),
    "E511": ErrorCode(
        "out of time",
        "A run was stopped at its time limit; a loop in the model may have no end.",
        "run at a smaller size, or cut the loop out of the model",
    ),
    "E512": ErrorCode(
        "too deep or too large for this process",
        "The model is nested deeper, or holds more, than this process can take.",
        "split the model, or raise the limits of the process",
    ),
    "E601": ErrorCode(
        "unknown pass",
        "A pipeline names a pass or a stage that is not registered.",
        "`smelt passes`",
    ),
    "E602": ErrorCode(
        "malformed pipeline",
        "The text of a pipeline does not follow its syntax; the message marks the place.",
        "canonicalize,fixpoint(simplify,fuse){max=8}",
    ),
    "E603": ErrorCode(
        "wrong option of a pass",
        "A pass has no option of that name, or the value has another type.",
        "`smelt explain PASS` lists its options",
    ),
    "E604": ErrorCode(
        "passes in the wrong order",
        "A pass declares that it must come before or after another, and the pipeline has them "
        "the other way round.",
        "swap the two, or leave one out",
    ),
    "E605": ErrorCode(
        "two passes of one name",
        "Two installed packages register a pass under the same name.",
        "uninstall one of the packages",
    ),
    "E606": ErrorCode(
        "unreadable pipeline file",
        "The file after @ cannot be read as UTF-8 text.",
        "--pipeline @path/to/pipeline.txt",
    ),
    "E607": ErrorCode(
        "unknown way of verifying",
        "`verify` is one of off, final and each.",
        'smelt.optimize(model, verify="final")',
    ),
    "E608": ErrorCode(
        "input specs without a function",
        "Input specs give the types of a JAX function; an ONNX model has its own.",
        "leave out --input",
    ),
    "E610": ErrorCode(
        "two targets of one name",
        "Two installed packages register a target under the same name.",
        "uninstall one of the packages",
    ),
    "E611": ErrorCode(
        "unknown target",
        "No installed package registers a target of that name.",
        "`smelt targets`",
    ),
    "E612": ErrorCode(
        "not a target",
        "An entry point of `smelt.targets` names something that is no Target.",
        "let the entry point name a smelt.Target",
    ),
    "E630": ErrorCode(
        "a file cannot be written",
        "The destination is a folder, is in none, or may not be written. A file that stood "
        "there is as it was.",
        "-o path/in/an/existing/folder.onnx",
    ),
    "E631": ErrorCode(
        "onnxruntime is not installed",
        "Results are compared by running models in ONNX Runtime, an optional dependency.",
        "pip install 'smelt[ort]'",
    ),
    "E632": ErrorCode(
        "wrong inputs for a run",
        "The number, element type, rank or size of the arrays differs from what the model takes.",
        "`smelt inspect model.onnx` shows its inputs",
    ),
    "E633": ErrorCode(
        "wrong size of a dim",
        "A symbolic dim has no size, an impossible one, or does not exist.",
        "--dim B=1,3",
    ),
    "E634": ErrorCode(
        "no model to make up inputs for",
        "Two plain functions say nothing about their inputs.",
        "smelt.verify(f, g, inputs=[...])",
    ),
    "E635": ErrorCode(
        "no such function",
        "The reference package.module:function cannot be imported or is no function.",
        "smelt convert examples.cnn:model --input 'f32[B,28,28,1]' -o cnn.onnx",
    ),
    "E636": ErrorCode(
        "malformed argument",
        "A size or an option on the command line does not have the form NAME=VALUE.",
        "--dim B=1,3 --option name=value",
    ),
    "E637": ErrorCode(
        "arguments that contradict each other",
        "Two arguments cannot both hold, such as two models from one standard input.",
        "`smelt COMMAND --help`",
    ),
    "E638": ErrorCode(
        "nothing to explain",
        "The topic is neither an error code nor a pass.",
        "`smelt passes`, or docs/errors.md",
    ),
    "E639": ErrorCode(
        "the system refuses",
        "The operating system refused to read, make or write a file or folder.",
        "check the path and its permissions",
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
    "E650": ErrorCode(
        "not a C name",
        "The name of a model or library cannot name functions in C.",
        "--option name=my_model",
    ),
    "E700": ErrorCode(
        "the interfaces differ",
        "Inputs or outputs differ in number, order, name, element type, rank or fixed size.",
        "`smelt diff a.onnx b.onnx`",
    ),
    "E701": ErrorCode(
        "a pass changed a result",
        "With --verify each, the model computed something else after a pass than before it, "
        "beyond what rounding and the pass's own declaration explain.",
        "run the reproducer, which names the rewrite; leave the pass out meanwhile",
    ),
    "E702": ErrorCode(
        "the results differ",
        "Two computations gave different results on the same inputs, beyond what rounding "
        "explains or the given tolerance allows.",
        "`smelt bisect model.onnx` finds the rewrite at fault",
    ),
    "E705": ErrorCode(
        "a target does not conform",
        "A target failed a case of the conformance suite.",
        "the message names the case; docs/add-a-target.md says what is asked",
    ),
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
        "The replacement that a rule built reads the result that it stands for.",
        "report the rule to its author",
    ),
    "E905": ErrorCode(
        "a broken invariant",
        "A pass left the graph in a state that breaks the rules of the IR.",
        "report it with the model and the pipeline",
    ),
    "E911": ErrorCode(
        "a pipeline that differs from run to run",
        "A bisection ran the same rewrites twice and got two results.",
        "report it with the model and the pipeline",
    ),
    "E950": ErrorCode(
        "a broken program",
        "An instruction lacks an operand or attribute that its kernel needs.",
        "report it with the model",
    ),
}
