"""Names that shape inference invents for unnamed dims: ``_d0``, ``_d1``.

They distinguish unknown sizes during a compile. Another run numbers them anew, so they are not
written: in a finished model such a dim has no name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set

import onnx_ir as ir
from onnx_shape_inference import SYM_DATA_KEY

from smelt.ir import scope

_INVENTED = re.compile(r"\b_d\d+\b")


def is_invented(name: str) -> bool:
    """True if the name or expression ``name`` contains an invented name."""
    return "_d" in name and _INVENTED.search(name) is not None


def invented_in(text: str) -> list[str]:
    """Return the invented names in the name or the expression of a dim."""
    return _INVENTED.findall(text) if "_d" in text else []


def invented_names(values: Iterable[ir.Value]) -> set[str]:
    """Return the invented names in the shapes and the known elements of ``values``.

    The element of an unknown scalar has an invented name that no shape contains.
    """
    texts: dict[str, None] = {}
    for value in values:
        if SYM_DATA_KEY in value.metadata_props:
            texts[value.metadata_props[SYM_DATA_KEY]] = None
        if value.shape is not None:
            for dim in value.shape.dims:
                if not isinstance(dim, int) and dim.value is not None:
                    texts[dim.value] = None
    return {name for text in texts if "_d" in text for name in _INVENTED.findall(text)}


def every_value(model: ir.Model) -> Iterator[ir.Value]:
    """Yield the inputs and results of all graphs."""
    yield from model.graph.inputs
    for function in model.functions.values():
        yield from function.graph.inputs
    for node in scope.nodes(model):
        for inner in scope.subgraphs(node):
            yield from inner.inputs
        yield from node.outputs


def without_invented(shape: ir.Shape, declared: Set[str]) -> ir.Shape:
    """Return ``shape`` with dims made unknown if they contain an invented name that is not
    ``declared``."""
    dims = [_dim_unless_invented(dim, declared) for dim in shape.dims]
    is_unchanged = all(new is old for new, old in zip(dims, shape.dims, strict=True))
    return shape if is_unchanged else ir.Shape(dims)


def _dim_unless_invented(dim: int | ir.SymbolicDim, declared: Set[str]) -> int | ir.SymbolicDim:
    """Return ``dim``, or an unknown dim if it has an invented name that is not ``declared``."""
    if isinstance(dim, int) or dim.value is None or "_d" not in dim.value:
        return dim
    names = _INVENTED.findall(dim.value)
    return ir.SymbolicDim(None) if any(name not in declared for name in names) else dim
