"""Resource limits."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E501": ErrorCode(
        "a tensor of absurd size",
        "A tensor claims more elements than could be stored.",
        "the file is damaged or hostile",
    ),
    "E502": ErrorCode(
        "inlining would explode",
        "Functions that call functions would give more nodes than the limit.",
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
        "save to a file: weights then go beside it",
    ),
    "E505": ErrorCode(
        "the disk is full",
        "There is no room for the file. An existing file is unchanged; no partial file is left.",
        "free some space, or write to another disk",
    ),
    "E510": ErrorCode(
        "out of memory",
        "A run asked for more memory than there is.",
        "run at a smaller size: --dim B=1",
    ),
    "E511": ErrorCode(
        "out of time",
        "A run was stopped at its time limit; a loop in the model may have no end.",
        "run at a smaller size, cut the loop out of the model, or give it a longer --timeout",
    ),
    "E512": ErrorCode(
        "too deep or too large for this process",
        "The model is nested deeper, or holds more, than this process can take.",
        "raise the limits of the process, or keep the weights in a file beside the model",
    ),
    "E520": ErrorCode(
        "a process was ended from outside",
        "The process of one model got a signal: SIGKILL where the system runs out of memory, "
        "SIGSEGV or SIGABRT where a library crashes. Other models of a batch go on.",
        "run the command alone on the model; with fewer --jobs if memory ran out",
    ),
    "E561": ErrorCode(
        "the C compiler took too long",
        "Building the emitted files passed the time limit, usually because of large weights.",
        "save the artifact and build it yourself",
    ),
}
