"""Errors in the use of targets, of their tools on this machine, and of their output."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.distribution import requirement
from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E611": ErrorCode(
        "unknown target",
        "No installed package registers a target of that name.",
        "`smelt targets`",
    ),
    "E612": ErrorCode(
        "a wrong consumer",
        "`--for` names programs that read ONNX files (consumers). No consumer has this name, smelt "
        "knows the consumer in one version only, or the target writes no file that others read.",
        "--for openvino, or --for onnxruntime>=1.18; docs/consumers.md lists all",
    ),
    "E616": ErrorCode(
        "a folder that cannot be run",
        "No installed target wrote the folder, or some of its files are missing or changed.",
        "`smelt compile MODEL --target c --dim B=1 -o out/` writes a folder that can be run",
    ),
    "E660": ErrorCode(
        "a wrong option of a target",
        "The target has no such option, or the value has the wrong type. A value that names "
        "functions or files must be a valid name for them.",
        "--option name=my_model",
    ),
    "E661": ErrorCode(
        "no C compiler",
        "To run a compiled model on this machine, smelt first builds it with a C compiler.",
        f"install gcc, clang or {requirement('host-cc')}, "
        "or name one in the environment variable CC",
    ),
    "E662": ErrorCode(
        "no table of costs",
        "The file with the costs of a target was not written by `smelt tune`, or has an old "
        "format.",
        "smelt tune --target ort -o costs.json",
    ),
    "E663": ErrorCode(
        "wrong options of a session",
        "An option of a session of ONNX Runtime, for example in session.json, is unknown or has a "
        "value of the wrong type.",
        "compile the model again, or remove options that docs/for-onnx-runtime.md does not list",
    ),
    "E664": ErrorCode(
        "nothing to measure",
        "The target does not choose among equivalent operators by measured costs.",
        "smelt tune --target ort -o costs.json",
    ),
    "E670": ErrorCode(
        "inputs that do not fit a program",
        "The model does not accept an array of this shape. Or the values lead to sizes other than "
        "declared, or to a branch that cannot be computed.",
        "give an array of the shape in the message, or other values",
    ),
    "E671": ErrorCode(
        "wrong inputs for an artifact",
        "An array is missing, or has another element type than the model's input.",
        "pass one array per input, of the element type in the message",
    ),
    "E675": ErrorCode(
        "no compiler for WebAssembly",
        "The target wasm builds C with clang, lld and wasi-libc, or with the compiler in the "
        "package ziglang.",
        "apt-get install clang lld wasi-libc, or "
        f"install {requirement('wasm')}, or name a compiler in SMELT_WASM_CC",
    ),
    "E676": ErrorCode(
        "nothing that runs WebAssembly",
        "To run a module on this machine, smelt needs Node or the package wasmtime.",
        f"install Node 18 or later, or {requirement('wasm')}",
    ),
}
