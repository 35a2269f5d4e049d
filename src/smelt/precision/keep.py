"""The text of ``--keep``: which nodes stay in float32."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

import onnx_ir as ir

from smelt.errors import UsageError, did_you_mean
from smelt.ir import opset, scope

AUTOMATIC = "auto"


@dataclass(frozen=True)
class Keep:
    """Which nodes stay in float32: those of ``operators``, and those whose name matches a shell
    pattern in ``patterns``. If ``automatic``, rules choose further nodes."""

    automatic: bool = True
    operators: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()

    def names(self, node: ir.Node) -> bool:
        """True if the user named ``node`` by its operator or by a pattern of its name."""
        name = node.name or ""
        return node.op_type in self.operators or any(
            fnmatchcase(name, pattern) for pattern in self.patterns
        )


def parse_keep(text: str, model: ir.Model) -> Keep:
    """Return the choice in ``text``, such as ``auto,Gemm`` or ``/head/*``.

    ``none`` alone keeps only nodes that cannot compute in half. Raises UsageError E603 for a word
    that is no operator and matches no name of a node of ``model``.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    nodes = list(scope.nodes(model))
    names = [node.name or "" for node in nodes]
    used = {node.op_type for node in nodes}
    known = used | set(opset.operators())
    operators, patterns = [], []
    for word in words:
        if word == AUTOMATIC or (word == "none" and len(words) == 1):
            continue
        if word in known:
            operators.append(word)
        elif any(fnmatchcase(name, word) for name in names):
            patterns.append(word)
        else:
            raise UsageError(
                "E603",
                f"--keep names {word!r}, which is neither an operator nor a node",
                why="it takes auto, none, operators and names or patterns of nodes of the model",
                fix=did_you_mean(word, [*sorted(known), *names], "`smelt inspect` lists the nodes"),
            )
    return Keep(AUTOMATIC in words, frozenset(operators), tuple(patterns))
