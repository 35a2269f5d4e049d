"""Usage: options, pipelines, files, plugins."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
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
        "A pass declares that it must come before or after another, and the pipeline has "
        "them the other way round.",
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
    "E609": ErrorCode(
        "no such model file",
        "The path is not a file, or may not be read.",
        "check the path",
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
    "E613": ErrorCode(
        "weights without a folder",
        "The model keeps weights in files beside it, but came as bytes or as a protobuf.",
        "load it from its path",
    ),
    "E614": ErrorCode(
        "no folder to write to",
        "The folder of the destination does not exist, or the destination is a folder itself.",
        "mkdir it first, or name a file in it",
    ),
    "E615": ErrorCode(
        "an extension cannot be loaded",
        "The installed package that registers it fails when it is imported, or what its entry "
        "point names is of another kind.",
        "upgrade or uninstall the package that the message names",
    ),
    "E616": ErrorCode(
        "a folder that cannot be run",
        "No installed target wrote the folder, or some of its files are missing or changed.",
        "`smelt compile MODEL --target c --dim B=1 -o out/` writes one that can",
    ),
    "E617": ErrorCode(
        "a file of arrays that cannot be read",
        "Inputs come from .npy and .npz files of NumPy and from .pb files that hold a TensorProto.",
        'np.savez("data.npz", x=x)',
    ),
    "E618": ErrorCode(
        "no such value",
        "A part of a model begins and ends at values of its main graph: inputs, weights, results.",
        "`smelt extract MODEL --inputs h1 --outputs y -o part.onnx`",
    ),
    "E619": ErrorCode(
        "a part that is not cut off",
        "What the outputs need does not all come from the inputs that were given.",
        "add the inputs that the message names, or choose values after them",
    ),
    "E620": ErrorCode(
        "a value without a type",
        "Inputs and outputs of a model have to declare an element type, and inference finds none "
        "for this value.",
        "choose a value before or after it",
    ),
    "E621": ErrorCode(
        "nothing to reduce",
        "The check does not see on the whole model what is to be kept.",
        "run the check by hand; --check-status says which exit status means: still there",
    ),
    "E622": ErrorCode(
        "a check that cannot be run",
        "The command of --check is not found, or may not be run. No shell reads it.",
        "smelt reduce MODEL --check 'smelt verify {} other.onnx' -o small.onnx",
    ),
    "E630": ErrorCode(
        "a file cannot be written",
        "The destination is a folder, is in none, or may not be written. A file that "
        "stood there is as it was.",
        "-o path/in/an/existing/folder.onnx",
    ),
    "E631": ErrorCode(
        "an optional package is not installed",
        "JAX functions need jax, models are run and compared by onnxruntime, and targets have "
        "dependencies of their own; each comes with an extra of smelt.",
        "pip install 'smelt[jax,ort]', or the extra that the message names",
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
        "The topic is no error code, pass, stage of a pipeline, target or operator.",
        "`smelt passes`, or docs/errors.md",
    ),
    "E639": ErrorCode(
        "the system refuses",
        "The operating system refused to read, make or write a file or folder.",
        "check the path and its permissions",
    ),
    "E643": ErrorCode(
        "wrong arguments of a command",
        "A command got an option that it does not have, a value of the wrong form, or lacks one.",
        "`smelt COMMAND --help`",
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
    "E642": ErrorCode(
        "an expected chain that cannot be read",
        "A chain is steps with arrows between them, each an operator, perhaps with the shapes"
        " of its results and a count.",
        'expect_graph(model, ["Conv:Bx28x28x32 -> Relu * 2"])',
    ),
    "E644": ErrorCode(
        "an operator declared wrong",
        "A field of an Operator is of another type, a name is no name, or a function takes other"
        " arguments than smelt gives it. It is refused where it is declared, so that it cannot"
        " break the compile of a model that holds it.",
        "declare it as docs/add-an-operator.md shows",
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
        " Or the kernel of a package raised an error of Python.",
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
    "E645": ErrorCode(
        "a body that needs itself",
        "The body of an operator beyond ONNX holds that operator again, so it has no end.",
        "build the body of ONNX operators, or of extension operators that have bodies",
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
    "E660": ErrorCode(
        "a wrong option of a target",
        "The target has no such option, or the value is of another type, or is a name that cannot "
        "name what the target writes.",
        "--option name=my_model",
    ),
    "E661": ErrorCode(
        "no C compiler",
        "To run a compiled model on this machine it is built first.",
        "install gcc, clang or smelt[host-cc], or name one in the environment variable CC",
    ),
    "E662": ErrorCode(
        "no table of costs",
        "A file named as costs of a target was not written by `smelt tune`, or is of another form.",
        "smelt tune --target ort -o costs.json",
    ),
    "E663": ErrorCode(
        "no advice for a session",
        "The options of a session of ONNX Runtime, such as those in session.json, are not known "
        "or of another type.",
        "compile the model again, or leave out what is not listed in docs/for-onnx-runtime.md",
    ),
    "E664": ErrorCode(
        "nothing to measure",
        "The target does not choose by measured costs.",
        "smelt tune --target ort -o costs.json",
    ),
    "E670": ErrorCode(
        "inputs that do not fit a program",
        "The shape of an array is not one that the model takes.",
        "give an array of the shape in the message",
    ),
    "E671": ErrorCode(
        "wrong inputs for an artifact",
        "An array is missing, or has another element type than the model takes.",
        "pass one array an input, of the element type in the message",
    ),
    "E680": ErrorCode(
        "an unreadable file of settings",
        "The smelt.toml or pyproject.toml that holds here is no TOML in UTF-8, or may not be read.",
        "mend the file, or leave the files out with --no-config",
    ),
    "E681": ErrorCode(
        "unknown setting",
        "A file of settings has a key that is no option of smelt or of the command. Options that "
        "say what is written, printed or run are given on the command line only.",
        "`smelt config` lists the settings",
    ),
    "E682": ErrorCode(
        "wrong value of a setting",
        "A file of settings or a variable SMELT_* gives an option a value of another type, or one "
        "that is not among its choices.",
        '[tool.smelt.optimize] verify = "each"',
    ),
}
