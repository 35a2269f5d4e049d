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

_PARAMETER = re.compile(r'loc\("(\w+)')
"""The name of the parameter in the location of an argument, such as ``loc("x['weight'][0]")``."""


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
        names = _parameter_names(self.exported, len(self.specs))
        kinds = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        kinds += [Parameter(name, Parameter.KEYWORD_ONLY) for name in self.keywords]
        self.__signature__ = Signature(kinds)
        self.__name__ = str(self.exported.fun_name)

    def arguments_or_own(
        self, specs: tuple[Any, ...], keywords: Any
    ) -> tuple[tuple[Any, ...], Any]:
        """Return the specs of a trace, or those of the export if the caller gave none."""
        return (specs, keywords) if specs or keywords else (self.specs, self.keywords)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the exported function on arrays or tracers."""
        leaves, tree = jax.tree.flatten((args, kwargs))
        assert tree == self.exported.in_tree
        return jax.tree.unflatten(self.exported.out_tree, evaluated(self.exported, leaves))


def evaluated(exported: Any, arrays: Sequence[Any]) -> list[Any]:
    """Return the results of ``exported`` for flat inputs ``arrays``.

    Raises Unsupported E101 or E102 for operators without a lowering.
    """
    from smelt.frontends.stablehlo.evaluate import Evaluator
    from smelt.frontends.stablehlo.sizes import as_array

    if exported.nr_devices != 1:
        raise Unsupported(
            "E101",
            f"the exported function runs on {exported.nr_devices} devices",
            why="a model runs on one device",
            fix="export the function for one device",
        )
    module = jax_names.module_of(exported)
    evaluator = Evaluator(module)
    kept_inputs = set(exported.module_kept_var_idx)  # JAX drops inputs that nothing reads.
    inputs = [prng.to_integers(array) for i, array in enumerate(arrays) if i in kept_inputs]
    if len(exported.platforms) > 1:
        # The first argument of such a module is the number of the platform.
        chosen = compat.platform_choice([[name] for name in exported.platforms]) or 0
        inputs = [np.asarray(chosen, np.int32), *inputs]
    results = evaluator.function("main", inputs)
    return [
        prng.to_keys(as_array(result), aval.dtype)
        for result, aval in zip(results, exported.out_avals, strict=True)
    ]


def _parameter_names(exported: Any, count: int) -> list[str]:
    """Return the names of the ``count`` positional parameters of the exported function.

    JAX records them in the locations of the module's arguments, one argument for each leaf of a
    parameter. A parameter without a usable name is called ``x<i>``.
    """
    module = jax_names.module_of(exported)
    main = next(
        view.operation
        for view in module.body.operations
        if view.operation.attributes["sym_name"].value == "main"
    )
    name_matches = [
        _PARAMETER.match(str(argument.location)) for argument in main.regions[0].blocks[0].arguments
    ]
    if len(exported.platforms) > 1:
        name_matches = name_matches[1:]  # The first argument is the number of the platform.
    match_of_leaf = dict(zip(exported.module_kept_var_idx, name_matches, strict=False))
    args, _ = jax.tree.unflatten(exported.in_tree, range(exported.in_tree.num_leaves))
    names: list[str] = []
    for i, leaf_numbers in enumerate(args[:count]):
        matches = [match_of_leaf.get(leaf) for leaf in jax.tree.leaves(leaf_numbers)]
        name = next((match.group(1) for match in matches if match), f"x{i}")
        names.append(name if name.isidentifier() and name not in names else f"x{i}")
    return names
