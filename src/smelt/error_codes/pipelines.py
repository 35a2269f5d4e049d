"""Errors in pipelines and options of their passes."""

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
        "A pass declares that it must run before or after another pass, and the pipeline has "
        "them in the opposite order.",
        "swap the two passes, or remove one",
    ),
    "E606": ErrorCode(
        "unreadable pipeline file",
        "The file after @ cannot be read as UTF-8 text.",
        "--pipeline @path/to/pipeline.txt",
    ),
}
