"""An exported function of ``jax.export``, as a function that the JAX frontend traces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import jax
import numpy as np

from smelt.errors import InvalidModel, Unsupported
from smelt.frontends.jax import compat, prng
from smelt.frontends.stablehlo import jax_names

_ROOT = re.compile(r'loc\("(\w+)')


def program_of(source: Any) -> Program:
    """Return the function in an ``Exported``, in its serialized bytes, or in a file of these bytes.

    Raises InvalidModel E302 for bytes that JAX cannot read.
    """
    if isinstance(source, str | Path):
        source = Path(source).read_bytes()
    if isinstance(source, bytes | bytearray):
        try:
            source = jax.export.deserialize(bytearray(source))
        except Exception as error:
            raise InvalidModel(
                "E302",
                "the exported function cannot be read",
                why=str(error),
                fix="write the file by jax.export.export(...)(...).serialize()",
            ) from error
    return Program(source)


@dataclass
class Program:
    """An exported function: a call evaluates its module on arrays.

    ``specs`` and ``keywords`` are those of the export; ``__signature__`` has the original parameter
    names.
    """

    exported: Any

    def __post_init__(self) -> None:
        """Set specs, keywords, signature and name from the export."""
        args, kwargs = jax.tree.unflatten(self.exported.in_tree, self.exported.in_avals)
        structs = [jax.tree.map(compat.struct_of, tree) for tree in (args, kwargs)]
        self.specs: tuple[Any, ...] = tuple(structs[0])
        self.keywords: dict[str, Any] = structs[1]
        names = _names(self.exported, len(self.specs))
        kinds = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        kinds += [Parameter(name, Parameter.KEYWORD_ONLY) for name in self.keywords]
        self.__signature__ = Signature(kinds)
        self.__name__ = str(self.exported.fun_name)

    def arguments_or_own(
        self, specs: tuple[Any, ...], keywords: Any
    ) -> tuple[tuple[Any, ...], Any]:
        """Return ``specs`` and ``keywords`` of a trace, or those of the export if both are
        empty."""
        return (specs, keywords) if specs or keywords else (self.specs, self.keywords)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the exported function on arrays or tracers."""
        leaves, tree = jax.tree.flatten((args, kwargs))
        assert tree == self.exported.in_tree
        return jax.tree.unflatten(self.exported.out_tree, evaluated(self.exported, leaves))


def evaluated(exported: Any, arrays: Sequence[Any]) -> list[Any]:
    """Return the flat results of ``exported``; raises Unsupported for operators without a
    lowering."""
    from smelt.frontends.stablehlo.evaluate import Evaluator
    from smelt.frontends.stablehlo.sizes import as_array

    if exported.nr_devices != 1:
        raise Unsupported(
            "E101",
            f"the exported function runs on {exported.nr_devices} devices",
            why="a model runs on one device",
            fix="export the computation of one device",
        )
    module = jax_names.module_of(exported)
    evaluator = Evaluator(module)
    kept_inputs = set(exported.module_kept_var_idx)
    inputs = [prng.to_integers(array) for i, array in enumerate(arrays) if i in kept_inputs]
    if len(exported.platforms) > 1:
        chosen = compat.platform_choice([[name] for name in exported.platforms]) or 0
        inputs = [np.asarray(chosen, np.int32), *inputs]
    results = evaluator.function("main", inputs)
    return [
        prng.to_keys(as_array(result), aval.dtype)
        for result, aval in zip(results, exported.out_avals, strict=True)
    ]


def _names(exported: Any, count: int) -> list[str]:
    """Return the names of the ``count`` parameters, read from the module's argument locations.

    Parameter ``i`` is ``x<i>`` if no argument states a usable name for it.
    """
    module = jax_names.module_of(exported)
    main = next(
        view.operation
        for view in module.body.operations
        if view.operation.attributes["sym_name"].value == "main"
    )
    locations = [
        _ROOT.match(str(argument.location)) for argument in main.regions[0].blocks[0].arguments
    ]
    if len(exported.platforms) > 1:
        locations = locations[1:]
    by_leaf = dict(zip(exported.module_kept_var_idx, locations, strict=False))
    args, _ = jax.tree.unflatten(exported.in_tree, range(exported.in_tree.num_leaves))
    names: list[str] = []
    for i, tree in enumerate(args[:count]):
        names_of_leaves = [by_leaf[leaf] for leaf in jax.tree.leaves(tree) if by_leaf.get(leaf)]
        name = names_of_leaves[0].group(1) if names_of_leaves else f"x{i}"
        names.append(name if name.isidentifier() and name not in names else f"x{i}")
    return names
