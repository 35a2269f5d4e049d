"""Usage of batches: many models by one command."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E690": ErrorCode(
        "no model for a batch",
        "A pattern matches no file, or only files in the folder of the results.",
        "smelt batch 'models/**/*.onnx' --do optimize -o out",
    ),
    "E691": ErrorCode(
        "two models with one result",
        "Two models of a batch would write the same file or folder; names that differ in case only "
        "are one name on some systems.",
        "rename one, or give each a batch of its own",
    ),
    "E692": ErrorCode(
        "an option that a batch gives by itself",
        "Where results go, and that the command answers in JSON, is the batch's to say.",
        "put -o and --json before --",
    ),
    "E693": ErrorCode(
        "a folder that a batch is at work in",
        "Two batches at a time would do the same models twice.",
        "wait for the other one, or choose another folder",
    ),
}
