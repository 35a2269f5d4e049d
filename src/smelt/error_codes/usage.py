"""Errors in the use of commands and functions: arguments, files, settings."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.distribution import install
from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E607": ErrorCode(
        "unknown mode of verification",
        "`verify` is one of off, final and each.",
        'smelt.optimize(model, verify="final")',
    ),
    "E608": ErrorCode(
        "input specs without a function",
        "Input specs give the input types of a JAX function; an ONNX model declares its own types.",
        "remove --input",
    ),
    "E609": ErrorCode(
        "no such model file",
        "The path is not a file, or may not be read.",
        "check the path",
    ),
    "E613": ErrorCode(
        "weights without a folder",
        "The model has weights in other files, but was passed as bytes or as a protobuf.",
        "load it from its path",
    ),
    "E614": ErrorCode(
        "no folder to write to",
        "The folder of the destination does not exist; or the destination is a folder and a file "
        "must be written, or the other way round.",
        "create the folder first; name a file for a model, and a folder for an artifact",
    ),
    "E617": ErrorCode(
        "a file of arrays that cannot be read",
        "Inputs come from .npy and .npz files of NumPy and from .pb files that hold a TensorProto.",
        'np.savez("data.npz", x=x)',
    ),
    "E618": ErrorCode(
        "no such value",
        "A part of a model is named by values of its main graph: inputs, weights or results.",
        "`smelt extract MODEL --inputs h1 --outputs y -o part.onnx`",
    ),
    "E619": ErrorCode(
        "inputs that do not determine the outputs",
        "The outputs of the part depend on a value that does not follow from its inputs.",
        "add the inputs that the message names, or choose values after them",
    ),
    "E620": ErrorCode(
        "a value without a type",
        "Inputs and outputs of a model must declare an element type, and type inference finds none "
        "for this value.",
        "choose a value before or after it",
    ),
    "E621": ErrorCode(
        "nothing to reduce",
        "The check does not find the fault in the whole model.",
        "run the check by hand; --check-status sets the exit status that shows the fault",
    ),
    "E622": ErrorCode(
        "a check that cannot be run",
        "The command of --check is not found, or may not be run. It is run without a shell.",
        "smelt reduce MODEL --check 'smelt verify {} other.onnx' -o small.onnx",
    ),
    "E630": ErrorCode(
        "a file cannot be written",
        "The destination is a folder, its folder does not exist, or it may not be written. An "
        "existing file is unchanged.",
        "-o path/in/an/existing/folder.onnx",
    ),
    "E631": ErrorCode(
        "an optional package is not installed",
        "smelt needs jax for JAX functions, onnxruntime to run and compare models, and further "
        "packages for some targets. An extra of smelt installs each of them.",
        f"{install('jax', 'ort')}, or the extra that the message names",
    ),
    "E632": ErrorCode(
        "wrong inputs for a run",
        "The number, element type, rank or size of the arrays differs from the model's inputs.",
        "`smelt inspect model.onnx` shows its inputs",
    ),
    "E633": ErrorCode(
        "wrong size of a dim",
        "A symbolic dim has no size or an impossible size, or no dim has that name.",
        "--dim B=1,3",
    ),
    "E634": ErrorCode(
        "random inputs without a model",
        "Random inputs need declared input types, and Python functions declare none.",
        "smelt.verify(f, g, inputs=[...])",
    ),
    "E635": ErrorCode(
        "no such function",
        "The reference package.module:function cannot be imported, needs a package that is not "
        "installed, or is not a function.",
        "smelt convert examples.cnn:model --input 'f32[B,28,28,1]' -o cnn.onnx",
    ),
    "E636": ErrorCode(
        "malformed argument",
        "A size or an option on the command line does not have the form NAME=VALUE.",
        "--dim B=1,3 --option name=value",
    ),
    "E637": ErrorCode(
        "arguments that contradict each other",
        "Two arguments exclude each other, such as two models from one standard input.",
        "`smelt COMMAND --help`",
    ),
    "E638": ErrorCode(
        "nothing to explain",
        "No error code, pass, stage of a pipeline, target, consumer or operator has this name.",
        "`smelt passes`, or docs/errors.md",
    ),
    "E639": ErrorCode(
        "the system refuses",
        "The operating system refused to read, create or write a file or folder.",
        "check the path and its permissions",
    ),
    "E642": ErrorCode(
        "an expected chain that cannot be read",
        "A chain is a sequence of steps with arrows between them; a step is an operator, optionally"
        " with the shapes of its results and a count.",
        'expect_graph(model, ["Conv:Bx28x28x32 -> Relu * 2"])',
    ),
    "E643": ErrorCode(
        "wrong arguments of a command",
        "A command got an unknown option or a malformed value, or lacks a required argument.",
        "`smelt COMMAND --help`",
    ),
    "E680": ErrorCode(
        "an unreadable file of settings",
        "The smelt.toml or pyproject.toml that smelt found is not TOML in UTF-8, or may not be "
        "read.",
        "correct the file, or ignore such files with --no-config",
    ),
    "E681": ErrorCode(
        "unknown setting",
        "A file of settings has a key that is not an option of smelt or of the command. Options "
        "that name files to write, formats of output or commands to run work on the command line "
        "only.",
        "`smelt config` lists the settings",
    ),
    "E682": ErrorCode(
        "wrong value of a setting",
        "A file of settings or a variable SMELT_* gives an option a value of another type, or one "
        "that is not among its choices.",
        '[tool.smelt.optimize] verify = "each"',
    ),
}
