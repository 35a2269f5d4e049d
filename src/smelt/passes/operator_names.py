"""Check operator names and node patterns in the options of passes.

A pass with an unknown name would do nothing, without a word.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

import onnx_ir as ir

from smelt.errors import UsageError, did_you_mean, letters_of
from smelt.ir import opset, scope

ALIASES = {
    "const": "Constant",
    "real_div": "Div",
    "linear": "Gemm",
    "expand_dims": "Unsqueeze",
    "batch_norm": "BatchNormalization",
    "layer_norm": "LayerNormalization",
    "instance_norm": "InstanceNormalization",
    "upsample_bilinear": "Resize",
    "upsample_nearest_neighbor": "Resize",
    "reshape_like": "Reshape",
    "select": "Where",
    "max_pool": "MaxPool",
    "avg_pool": "AveragePool",
    "reduce_log_sum_exp": "ReduceLogSumExp",
    "maximum": "Max",
    "minimum": "Min",
    "logical_not": "Not",
    "logical_and": "And",
}
"""Core ML operator names that differ from ONNX's; the options of Core ML's passes use them."""

_MATCHED = "smelt.matched_patterns"


def operator_names(owner: str, names: Iterable[str], model: ir.Model) -> frozenset[str]:
    """Return the operators that ``names`` mean, spelled as in ONNX or in ``model``.

    Case and underscores do not matter: ``mul`` is Mul, ``reduce_mean`` is ReduceMean. Raises
    UsageError E603 for a name that no operator has.
    """
    requested = tuple(names)
    if not requested:
        return frozenset()
    beyond_onnx = {node.op_type for node in scope.nodes(model) if node.domain}
    known = {letters_of(name): name for name in (*sorted(beyond_onnx), *opset.operators())}
    operators = set()
    for name in requested:
        operator = ALIASES.get(name.lower(), known.get(letters_of(name)))
        if operator is None:
            raise UsageError(
                "E603",
                f"{owner} cannot take {name!r}",
                why="neither ONNX nor the model has this operator",
                fix=did_you_mean(
                    name, known.values(), "`smelt inspect` shows the operators of a model"
                ),
            )
        operators.add(operator)
    return frozenset(operators)


def check_node_patterns(owner: str, patterns: Iterable[str], model: ir.Model) -> None:
    """Raise UsageError E603 for a pattern of ``patterns`` that has matched no node name so far.

    The model's ``meta`` remembers which patterns matched, because a pass may run twice and its
    first run may rename the nodes that it matched.
    """
    matched: set[str] = model.meta.setdefault(_MATCHED, set())
    unmatched = set(patterns) - matched
    if not unmatched:
        return
    names = [node.name or "" for node in scope.nodes(model)]
    for pattern in sorted(unmatched):
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UsageError(
                "E603",
                f"{owner} cannot take {pattern!r}",
                why="no node of the model has such a name when the pass runs",
                fix=did_you_mean(pattern, names, "`smelt inspect` lists the nodes"),
            )
        matched.add(pattern)
