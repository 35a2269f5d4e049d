"""Check the operator names and node patterns in options; an unknown one would silently do
nothing."""

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


def operator_names(owner: str, given: Iterable[str], model: ir.Model) -> frozenset[str]:
    """Return the operators that the names in ``given`` mean, spelled as in ONNX or in ``model``.

    Case and underscores do not matter: ``mul`` is Mul, ``reduce_mean`` is ReduceMean. Raises
    UsageError E603 for a name that is no operator.
    """
    asked = tuple(given)
    if not asked:
        return frozenset()
    own = {node.op_type for node in scope.nodes(model) if node.domain}
    known = {letters_of(name): name for name in (*sorted(own), *opset.operators())}
    found = set()
    for name in asked:
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
        found.add(operator)
    return frozenset(found)


def check_node_patterns(owner: str, given: Iterable[str], model: ir.Model) -> None:
    """Raise UsageError E603 for a pattern that has matched no node name of ``model`` so far.

    The matched patterns are remembered in the model's ``meta``, because a pass may run twice and
    the first run may rename the nodes that it matched.
    """
    matched: set[str] = model.meta.setdefault(_MATCHED, set())
    waiting = set(given) - matched
    if not waiting:
        return
    names = [node.name or "" for node in scope.nodes(model)]
    for pattern in sorted(waiting):
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UsageError(
                "E603",
                f"{owner} cannot take {pattern!r}",
                why="no node of the model has such a name when the pass runs",
                fix=did_you_mean(pattern, names, "`smelt inspect` lists the nodes"),
            )
        matched.add(pattern)
