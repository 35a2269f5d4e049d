"""Inputs of a trace that become weights of the model, with numbers or to be filled later.

Weights are the abstract arrays that the function holds, and the arguments that the caller names.
Both are inputs of the jaxpr, so no constant folding can read missing numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import jax
import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError
from smelt.frontends.jax import compat
from smelt.frontends.jax.call.arguments import Arguments
from smelt.frontends.jax.call.names import join, unique
from smelt.frontends.jax.call.parameters import Parameters
from smelt.frontends.jax.call.state import is_abstract
from smelt.frontends.jax.operand import Operand
from smelt.ir.build import Builder
from smelt.ir.tensors.missing_weights import add_missing_weight


@dataclass(frozen=True)
class Weights:
    """The weights by their position among the inputs of a jaxpr: ``leaves`` and their ``names``.

    ``expected`` lists all names, also of weights that the function holds but never reads.
    """

    leaves: Mapping[int, Any]
    names: Mapping[int, str]
    expected: Sequence[str]

    def without(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the ``inputs`` that are not weights."""
        return [item for position, item in enumerate(inputs) if position not in self.leaves]

    def operand(self, builder: Builder, position: int, aval: compat.Aval) -> Operand:
        """Return the initializer of input ``position``, with the numbers of its leaf if it has any.

        Raises UsageError E115 for a symbolic size.
        """
        leaf, name = self.leaves[position], self.names[position]
        if any(map(compat.is_symbolic, aval.shape)):
            raise UsageError(
                "E115",
                f"{name!r}, {compat.short_type(aval)}, cannot be a weight",
                why="its size is not known before the model runs",
                fix="make it an input, or give its sizes as numbers",
            )
        dtype = np.dtype(aval.dtype)
        if is_abstract(leaf) or isinstance(leaf, str):
            kind = ir.DataType.from_numpy(dtype)
            value = add_missing_weight(builder, name, kind, tuple(aval.shape))
        else:
            array = compat.host_array(leaf)
            array = array.view() if array.dtype == dtype else array.astype(dtype)
            value = builder.constant(array, name)
        return Operand(value, tuple(aval.shape))


def weights_of(
    arguments: Arguments, patterns: Sequence[str], parameters: Parameters, read: Sequence[str]
) -> Weights:
    """Return the weights among the leaves of ``arguments`` and the parameters ``read`` after them.

    Raises UsageError E115 for a pattern that matches no argument.
    """
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in arguments.parameters):
            raise UsageError(
                "E115",
                f"no argument of the function has a name that matches {pattern!r}",
                fix=f"its arguments are {', '.join(arguments.parameters) or 'none'}",
                why="weights= takes patterns of argument names",
            )
    leaves: dict[int, Any] = {}
    paths: dict[int, str] = {}
    leaves_with_paths = jax.tree_util.tree_flatten_with_path(tuple(arguments.specs))[0]
    for position, (path, leaf) in enumerate(leaves_with_paths):
        argument = arguments.parameters[path[0].idx]
        if any(fnmatchcase(argument, pattern) for pattern in patterns):
            leaves[position] = leaf
            paths[position] = join("", path[1:]) or argument
    abstract_names = parameters.weights()
    for position, name in enumerate(read, len(leaves_with_paths)):
        if name in abstract_names:
            leaves[position], paths[position] = parameters.arrays[name], name
    names = unique(list(paths.values()), set())
    named = dict(zip(paths, names, strict=True))
    unread = [name for name in abstract_names if name not in read]
    return Weights(leaves, named, [*named.values(), *unread])
