"""What merges make and refuse stands in ``told.txt``, which is read when an entry changes.

A row is an expression over the names below: ``merged(a, b)`` merges two decoders, ``joined(a, b,
pairs)`` connects two models, ``tied(a)`` stores embeddings once, ``shared(a, b)`` writes files that
share weights. ``__`` stands for a dot in a name, ``_plus_`` and ``_times_`` for the sign in a dim; the opset is 20 by default.
``PYTHONPATH=src:tests python tests/merging/test_told.py`` writes the entries again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import onnx_ir as ir
import pytest
from recorded import digest, facts, parsed, rows, told, write

from smelt.frontends.onnx.mapped import HAD_EXTERNAL_DATA
from smelt.ir import scope
from smelt.ir.defaults import META_KEY
from smelt.ir.names import values_of
from smelt.ir.symbolic_dims.dim_texts import symbolic_dim
from smelt.merging import ties
from smelt.merging.facts import Facts
from smelt.merging.merge import Options, connected_models, merged_decoders
from smelt.merging.share import share

TABLE = Path(__file__).with_name("told.txt")
BOTH = ("a.onnx", "b.onnx")


def model(graph: str, **defaults: float) -> ir.Model:
    """Return the model of a graph, whose inputs in ``defaults`` have that value by default."""
    result = parsed(graph if graph.startswith("opset") else f"opset 20: {graph}")
    for value in values_of(result.graph):
        value.name = str(value.name).replace("__", ".")
        dims = value.shape.dims if value.shape is not None else ()
        spelled = [str(dim).replace("_plus_", "+").replace("_times_", "*") for dim in dims]
        for axis, dim in enumerate(spelled):
            if {*dim} & {*"+*"} and value.shape is not None:
                value.shape[axis] = symbolic_dim(dim)
    for value in result.graph.inputs:
        if value.name in defaults and value.dtype is not None:
            value.meta[META_KEY] = ir.tensor([defaults[value.name]], value.dtype)
    return result


def described(merged: ir.Model, told_facts: Facts) -> list[Any]:
    """Return the ports and weights of a result, a digest of all of it, and its facts."""
    ports = [*merged.graph.inputs, *merged.graph.outputs]
    types = [f"{each.name}: {each.dtype}{each.shape}" for each in ports]
    defaults = [str(each.meta.get(META_KEY)) for each in merged.graph.inputs]
    inner = [
        f"{value.name} {value.shape}"
        for graph in scope.graphs(merged)
        for value in values_of(graph)
    ]
    weights = " ".join(map(str, merged.graph.initializers))
    about = [merged.opset_imports, merged.functions.keys(), merged.ir_version]
    external = merged.graph.meta.get(HAD_EXTERNAL_DATA)
    seen = digest(*defaults, *inner, str(about), str(external))
    return [*types, weights, seen, facts(merged), str(told_facts.to_json())]


def sources(a: Any, b: Any) -> tuple[ir.Model, ir.Model]:
    """Return two models, each given as a model or as text."""
    return tuple(model(each) if isinstance(each, str) else each for each in (a, b))  # type: ignore[return-value]


def merged(a: Any, b: Any, condition: str = "cached", **options: Any) -> list[Any]:
    """Return what one model of two decoders is."""
    caches = options.pop("caches", "empty")
    made = merged_decoders(sources(a, b), BOTH, Options(**options), condition, caches)
    return described(*made)


def joined(a: Any, b: Any, pairs: Mapping[str, str], **options: Any) -> list[Any]:
    """Return what one model after the other is."""
    return described(*connected_models(sources(a, b), BOTH, pairs, Options(**options)))


def tied(a: str, least: int = 64, rows_at_once: int = 2) -> list[Any]:
    """Return the names of the tied weights of a model, and its digest."""
    made = model(a)
    with patch.object(ties, "SMALLEST", least), patch.object(ties, "ROWS", rows_at_once):
        return [ties.tie_embeddings(made), facts(made)]


def shared(*graphs: str, **options: Any) -> list[Any]:
    """Return the facts of files with one file of weights, and the sizes of the files."""
    models = {f"m{number}.onnx": model(each) for number, each in enumerate(graphs)}
    with tempfile.TemporaryDirectory() as folder:
        found = share(models, folder, **options)
        sizes = sorted((path.name, path.stat().st_size) for path in Path(folder).iterdir())
    return [found.to_json(), sizes]


def with_fields(made: ir.Model, **imports: int) -> ir.Model:
    """Return a model that imports these domains, one that had external data."""
    made.opset_imports.update(imports)
    made.graph.meta[HAD_EXTERNAL_DATA] = True
    return made


NAMES = {each.__name__: each for each in (model, merged, joined, tied, shared, with_fields)}


def entry(row: str) -> str:
    """Return the entry of a row."""
    return told(row, NAMES)


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_merges_tell_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/merging/test_told.py"


if __name__ == "__main__":
    write(TABLE, entry)
