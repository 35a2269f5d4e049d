"""Tensors whose data, type and dims contradict each other."""

from __future__ import annotations

from frontends.onnx.broken.change import Broken, Cases, changed, graph, weight
from onnx import ModelProto, TensorProto, helper


def _stored(dtype: int, **fields: list[object]) -> Broken:
    def change(tensor: TensorProto) -> None:
        tensor.ClearField("raw_data")
        tensor.data_type = dtype
        for name, values in fields.items():
            getattr(tensor, name).extend(values)

    return changed(weight(change), _read_by_shape)


def _read_by_shape(model: ModelProto) -> None:
    model.graph.node[0].CopyFrom(helper.make_node("Relu", ["x"], ["y"]))


def _sparse(values: TensorProto, indices: TensorProto, dims: list[int]) -> Broken:
    return changed(
        graph("y = Add(x, w)"),
        lambda m: m.graph.sparse_initializer.append(
            helper.make_sparse_tensor(values, indices, dims)
        ),
    )


def _values(n: int, name: str = "w") -> TensorProto:
    return helper.make_tensor(name, TensorProto.FLOAT, [n], [1.0] * n)


def _indices(
    *at: int, dims: list[int] | None = None, dtype: int = TensorProto.INT64
) -> TensorProto:
    return helper.make_tensor("", dtype, dims or [len(at)], at)


CASES: Cases = {
    "fewer bytes than dims": weight(lambda t: t.dims.append(2)),
    "more bytes than dims": weight(lambda t: t.dims.__setitem__(0, 3)),
    "a negative dim": weight(lambda t: t.dims.__setitem__(0, -4)),
    "two negative dims": weight(lambda t: t.dims.__setitem__(0, -4), lambda t: t.dims.append(-1)),
    "no element type": weight(lambda t: t.ClearField("data_type")),
    "element type 0": weight(lambda t: setattr(t, "data_type", 0)),
    "element type 99": weight(lambda t: setattr(t, "data_type", 99)),
    "2^60 elements": weight(lambda t: t.dims.extend([2**30, 2**30])),
    "raw and typed data": weight(lambda t: t.float_data.extend([1.0] * 4)),
    "raw data and data of another type": weight(lambda t: t.int64_data.extend([1] * 4)),
    "two kinds of typed data": _stored(
        TensorProto.FLOAT, float_data=[1.0] * 4, double_data=[1.0] * 4
    ),
    "data in the field of another type": _stored(TensorProto.FLOAT, int32_data=[1] * 4),
    "no data": _stored(TensorProto.FLOAT),
    "an empty tensor with data": weight(lambda t: t.dims.__setitem__(0, 0)),
    "raw strings": weight(lambda t: setattr(t, "data_type", TensorProto.STRING)),
    "fewer strings than dims": _stored(TensorProto.STRING, string_data=[b"a"]),
    "an int8 of 300": _stored(TensorProto.INT8, int32_data=[300] * 4),
    "a bool of 2": _stored(TensorProto.BOOL, int32_data=[2] * 4),
    "an int4 of 300": _stored(TensorProto.INT4, int32_data=[300] * 2),
    "a float16 of 70000": _stored(TensorProto.FLOAT16, int32_data=[70000] * 4),
    "a uint32 of 2^33": _stored(TensorProto.UINT32, uint64_data=[2**33] * 4),
    "a piece of a tensor": weight(
        lambda t: t.segment.CopyFrom(TensorProto.Segment(begin=0, end=2))
    ),
    "external data with data inside": weight(
        lambda t: setattr(t, "data_location", TensorProto.EXTERNAL),
        lambda t: t.external_data.add(key="location", value="w.bin"),
    ),
    "external data without a location": weight(
        lambda t: t.ClearField("raw_data"),
        lambda t: setattr(t, "data_location", TensorProto.EXTERNAL),
    ),
    "sparse values without a name": _sparse(_values(2, ""), _indices(0, 1), [4]),
    "sparse values of rank 2": _sparse(
        helper.make_tensor("w", 1, [1, 2], [1.0, 2.0]), _indices(0, 1), [4]
    ),
    "sparse indices out of range": _sparse(_values(2), _indices(0, 4), [4]),
    "sparse indices below zero": _sparse(_values(2), _indices(-1, 2), [4]),
    "sparse indices out of order": _sparse(_values(2), _indices(2, 1), [4]),
    "sparse indices twice": _sparse(_values(2), _indices(2, 2), [4]),
    "sparse indices of another number": _sparse(_values(2), _indices(0, 1, 2), [4]),
    "sparse indices of another rank": _sparse(_values(2), _indices(0, 0, 0, 1, dims=[2, 2]), [4]),
    "sparse indices of int32": _sparse(_values(2), _indices(0, 1, dtype=TensorProto.INT32), [4]),
    "sparse dims of a negative size": _sparse(_values(2), _indices(0, 1), [-4]),
    "a sparse weight of the name of another": changed(
        _sparse(_values(2), _indices(0, 1), [4]), lambda m: m.graph.initializer.append(_values(4))
    ),
}
