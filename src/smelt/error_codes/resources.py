"""Resource limits."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E501": ErrorCode(
        "a tensor of absurd size",
        "A tensor declares more elements than any machine can store.",
        "the file is damaged or hostile",
    ),
    "E502": ErrorCode(
        "inlining would give too many nodes",
        "Functions that call functions would become more nodes than the limit.",
        "smelt.load(path, inline=False)",
    ),
    "E503": ErrorCode(
        "a file beyond 2 GiB",
        "A protobuf holds at most 2 GiB.",
        "save the weights as external data",
    ),
    "E504": ErrorCode(
        "weights beyond 2 GiB",
        "The weights do not fit into one protobuf.",
        "save the model to a file with external data: weights are then in a second file",
    ),
    "E505": ErrorCode(
        "the disk is full",
        "The disk has no space for the file. An existing file is unchanged; no partial file "
        "remains.",
        "free some space, or write to another disk",
    ),
    "E510": ErrorCode(
        "out of memory",
        "A run needs more memory than the machine has, or than the limit allows.",
        "run at a smaller size: --dim B=1",
    ),
    "E511": ErrorCode(
        "out of time",
        "A run was stopped at its time limit; a loop in the model may have no end.",
        "run at a smaller size, remove the loop from the model, or set a longer --timeout",
    ),
    "E512": ErrorCode(
        "too deep or too large for this process",
        "The model is nested deeper, or has more data, than the limits of this process allow.",
        "raise the limits of the process, or save the weights as external data",
    ),
    "E520": ErrorCode(
        "a process was ended from outside",
        "The process of one model got a signal: SIGKILL where the system runs out of memory, "
        "SIGSEGV or SIGABRT where a library crashes. Other models of a batch continue.",
        "run the command on this model alone; use fewer --jobs if memory ran out",
    ),
    "E561": ErrorCode(
        "the C compiler took too long",
        "The C compiler exceeded the time limit on the generated files, usually because of large "
        "weights.",
        "save the artifact and build it yourself",
    ),
    "E562": ErrorCode(
        "too much memory for WebAssembly",
        "Weights, intermediate results, inputs and outputs of a module share 4 GiB.",
        "--dim B=1, or --weights int8",
    ),
}
