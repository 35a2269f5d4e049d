"""Versions of the file format and of the operator sets.

A version that the installed ``onnx`` does not describe is refused, because its operators are
unknown. A version newer than this smelt is refused for any ``onnx``, because an operator may have
changed its meaning.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import onnx
import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.ir.known_forms import NEWEST_READ

NEWEST_IR = 14
"""The newest version of the file format that this smelt was written for."""


def check_imports(proto: onnx.ModelProto) -> None:
    """Raise InvalidModel E319 for a domain imported at two versions, or a missing ir_version."""
    if not proto.HasField("ir_version"):
        raise InvalidModel(
            "E319",
            "the model has no ir_version",
            why="ir_version is the version of the file format",
            fix="export the model again",
        )
    _check_unique(proto.opset_import, "the model")
    for function in proto.functions:
        _check_unique(function.opset_import, f"function {function.name!r}")


def _check_unique(imports: Iterable[onnx.OperatorSetIdProto], owner: str) -> None:
    """Raise InvalidModel E319 for a domain imported at two versions."""
    version_of: dict[str, int] = {}
    for item in imports:
        domain = "" if item.domain == "ai.onnx" else item.domain
        if version_of.setdefault(domain, item.version) != item.version:
            raise InvalidModel(
                "E319",
                f"{owner} imports the domain {domain or 'ai.onnx'!r} at two versions",
                why=f"{version_of[domain]} and {item.version}",
                fix="import the domain once",
            )


def check_versions(model: ir.Model) -> None:
    """Raise InvalidModel E319 for versions that do not exist or that ``onnx`` does not know."""
    version = model.ir_version
    if not 1 <= version <= onnx.IR_VERSION:
        raise InvalidModel(
            "E319",
            f"the IR version {version} is unknown",
            why=f"the installed onnx {onnx.__version__} knows 1 to {onnx.IR_VERSION}",
            fix="install a newer onnx, or export the model again",
        )
    if version > NEWEST_IR:
        raise InvalidModel(
            "E319",
            f"the model has IR version {version}",
            why=f"the highest that this smelt was written for is {NEWEST_IR}",
            fix="install a newer smelt, or export the model with an older onnx",
        )
    _check_opsets(model.opset_imports, "the model")
    for function in model.functions.values():
        _check_opsets(function.opset_imports, f"function {function.name!r}")


def _check_opsets(imports: dict[str, int], owner: str) -> None:
    """Raise InvalidModel E319 for an unknown version of a domain."""
    for domain, version in imports.items():
        lowest, highest = _known_versions().get(domain, (0, 2**31 - 1))
        what = f"{owner} imports version {version} of the domain {domain or 'ai.onnx'!r}"
        if not lowest <= version <= highest:
            raise InvalidModel(
                "E319",
                what,
                why=f"versions go from {lowest} to {highest} in the installed onnx",
                fix="install a newer onnx, or export the model for a lower opset",
            )
        if domain in ("", "ai.onnx") and version > NEWEST_READ:
            raise InvalidModel(
                "E319",
                what,
                why=f"the highest that this smelt was written for is {NEWEST_READ}; "
                "operators may have changed since",
                fix="install a newer smelt, or export the model for a lower opset",
            )


@cache
def _known_versions() -> dict[str, tuple[int, int]]:
    """Return the lowest and highest version of each domain that ``onnx`` describes.

    A row of its table is: release, IR version, and the versions of the three domains.
    """
    rows = [row[2:] for row in onnx.helper.VERSION_TABLE]
    domains = ("", "ai.onnx.ml", "ai.onnx.training")
    highest = [max(row[k] for row in rows if len(row) > k) for k in range(len(domains))]
    ranges = {domain: (1, top) for domain, top in zip(domains, highest, strict=True)}
    return ranges | {"ai.onnx": ranges[""]}
