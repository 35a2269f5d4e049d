"""Check sparse weights: values, indices, and the dims of the dense tensor.

The IR has no sparse weights, so they become dense on load, as in every runtime.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import numpy_helper

from smelt.errors import InvalidModel, ResourceLimit
from smelt.frontends.onnx.checks.walk import Scopes, scopes

MAX_BYTES = 2**31
"""Larger sparse weights, in bytes, are not made dense."""


def check_sparse(sparse: onnx.SparseTensorProto) -> None:
    """Raise InvalidModel E311 if values, indices and dims of ``sparse`` do not match."""
    values, indices, dims = sparse.values, sparse.indices, list(sparse.dims)
    at = f"sparse tensor {values.name!r} {dims}"
    why = ""
    if not dims or any(dim <= 0 for dim in dims):
        why = "its dims are not all positive"
    elif len(values.dims) != 1:
        why = f"its values have {len(values.dims)} dims, not one"
    elif indices.data_type != onnx.TensorProto.INT64 and values.dims[0]:
        why = "its indices are not of type int64"
    elif list(indices.dims) not in ([values.dims[0]], [values.dims[0], len(dims)]):
        why = f"its indices have the dims {list(indices.dims)} for {values.dims[0]} values"
    elif indices.data_location != onnx.TensorProto.EXTERNAL:
        why = _fault_of_order(_positions(sparse), math.prod(dims))
    if why:
        raise InvalidModel(
            "E311",
            "a sparse tensor is inconsistent",
            at=at,
            why=why,
            fix="export the model again, or correct the sparse tensor",
        )


def _positions(sparse: onnx.SparseTensorProto) -> np.ndarray | None:
    """Return the row-major position of each value in the dense tensor.

    The indices are positions already, or one index per dim. None if an index is outside its dim.
    """
    indices = numpy_helper.to_array(sparse.indices)
    if indices.ndim == 1:
        return indices
    dims = np.asarray(sparse.dims)
    if indices.size and ((indices < 0) | (indices >= dims)).any():
        return None
    strides = np.concatenate([np.cumprod(dims[:0:-1])[::-1], [1]]).astype(np.int64)
    return np.asarray(indices @ strides)


def _fault_of_order(positions: np.ndarray | None, count: int) -> str:
    """Return why the positions are invalid, "" if they ascend within the ``count`` elements."""
    if positions is None or (
        positions.size and not 0 <= positions.min() <= positions.max() < count
    ):
        return "an index is outside its dims"
    return "its indices do not ascend" if (np.diff(positions) <= 0).any() else ""


def make_dense(proto: onnx.ModelProto, proto_scopes: Scopes) -> onnx.ModelProto:
    """Return ``proto``, or a copy with dense weights if it has sparse ones.

    ``proto_scopes`` are the scopes of ``proto``. Raises ResourceLimit E501 for a weight that is
    too large, and InvalidModel E314 if its parts are external data.
    """
    if not any(
        scope.graph is not None and scope.graph.sparse_initializer for scope in proto_scopes
    ):
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for scope in scopes(copy):
        if scope.graph is not None:
            for sparse in scope.graph.sparse_initializer:
                scope.graph.initializer.append(_dense(sparse))
            scope.graph.ClearField("sparse_initializer")
    return copy


def _dense(sparse: onnx.SparseTensorProto) -> onnx.TensorProto:
    """Return one sparse weight as a dense tensor."""
    at = f"sparse tensor {sparse.values.name!r} {list(sparse.dims)}"
    if onnx.TensorProto.EXTERNAL in (sparse.values.data_location, sparse.indices.data_location):
        why = "sparse tensors are read from the model only"
        raise InvalidModel(
            "E314",
            "a sparse tensor has its data in an external file",
            at=at,
            why=why,
            fix="export the model again with dense weights",
        )
    values = numpy_helper.to_array(sparse.values)
    count = math.prod(sparse.dims)
    if count * values.itemsize > MAX_BYTES:
        raise ResourceLimit(
            "E501",
            f"a sparse tensor has {count:,} elements",
            at=at,
            why="smelt stores its elements densely",
            fix="export the model again with a smaller tensor",
        )
    elements = np.zeros(count, values.dtype)
    elements[_positions(sparse)] = values
    return numpy_helper.from_array(elements.reshape(tuple(sparse.dims)), sparse.values.name)
