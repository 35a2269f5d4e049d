"""The table of what ONNX Runtime lacks, held against the kernels of the installed runtime."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from installed import ONNXRUNTIME
from onnxruntime.capi import onnxruntime_pybind11_state as kernels

import smelt
from smelt.ir import opset, text
from smelt.operators.onnxruntime.runtime_gaps import GAPS, typed_input
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.runtime.reference import Reference
from smelt.runtime.runner import open_runner

OPSET = 23
NO_END = 2**31 - 1
NAMES = {dtype: dtype.name.lower() for dtype in ir.DataType}
ADDED = {("BitShift", ir.DataType.UINT16): (1, 32)}
"""The release of ONNX Runtime that has the kernel of a row, where there is one."""


@cache
def kernel_types() -> dict[str, set[str]]:
    """Element types of the kernels of each operator, as of ``OPSET``."""
    found = defaultdict(set)
    for kernel in kernels.get_all_opkernel_def():
        if kernel.domain or kernel.provider != "CPUExecutionProvider":
            continue
        schema = opset.schema(kernel.op_name, OPSET)
        low, high = kernel.version_range
        if schema is None or not schema.inputs:
            continue
        since = schema.since_version
        if since == low if high == NO_END else low <= since <= high:
            variable = schema.inputs[typed_input(kernel.op_name)].type_str
            found[kernel.op_name] |= set(kernel.type_constraints.get(variable, ()))
    return found


@pytest.mark.parametrize(("op_type", "dtype"), GAPS, ids=str)
def test_the_runtime_lacks_each_row_and_onnx_has_it(op_type: str, dtype: ir.DataType) -> None:
    schema = opset.schema(op_type, OPSET)
    assert schema is not None
    spelled = f"tensor({NAMES[dtype]})"
    assert spelled in schema.inputs[typed_input(op_type)].types
    there = (op_type, dtype) in ADDED and ADDED[op_type, dtype] <= ONNXRUNTIME
    assert (spelled in kernel_types()[op_type]) == there


def test_no_type_of_these_operators_is_forgotten() -> None:
    """Numbers of 64 bits that no other type holds in order stay lacking, and so do texts."""
    left = {"ArgMax": {"uint64"}, "ArgMin": {"uint64"}, "Pad": {"string"}, "Trilu": {"string"}}
    left |= {name: {"int64", "uint64", "string"} for name in ("DepthToSpace", "SpaceToDepth")}
    left |= {"TopK": {"uint64"}, "Pow": {"uint64"}}
    left |= {"NonZero": {"string"}, "ReduceMax": {"uint64"}, "ReduceMin": {"uint64"}}
    for op_type in {op_type for op_type, _ in GAPS}:
        schema = opset.schema(op_type, OPSET)
        wanted = {t for t in schema.inputs[typed_input(op_type)].types if t.startswith("tensor(")}
        gaps = {name[7:-1] for name in wanted - kernel_types()[op_type]}
        numbers = {name for name in gaps if "float" not in name and "complex" not in name}
        rows = {NAMES[dtype] for name, dtype in GAPS if name == op_type}
        assert numbers - rows - {"int4", "uint4"} == left.get(op_type, set()), op_type


GRAPHS = {
    "BitShift": '({0}[2,6] x, {0}[6] z) => ({0}[2,6] y) {{ y = BitShift<direction="LEFT">(x, z) }}',
    "Clip": "({0}[2,6] x, {0} a, {0} b) => ({0}[2,6] y) {{ y = Clip(x, a, b) }}",
    "DepthToSpace": "({0}[1,4,2,3] x) => ({0}[1,1,4,6] y) {{ y = DepthToSpace<blocksize=2>(x) }}",
    "SpaceToDepth": "({0}[1,1,4,6] x) => ({0}[1,4,2,3] y) {{ y = SpaceToDepth<blocksize=2>(x) }}",
    "Max": "({0}[2,6] x, {0}[6] z, {0} s) => ({0}[2,6] y) {{ y = Max(x, z, s) }}",
    "Min": "({0}[2,6] x) => ({0}[2,6] y) {{ y = Min(x) }}",
    "Pad": "({0}[2,6] x, {0} z) => ({0}[5,6] y) <int64[4] p = {{1,0,2,0}}> {{ y = Pad(x, p, z) }}",
    "ReduceMax": "({0}[2,6] x) => ({0}[6] y) <int64[1] a = {{0}}> "
    "{{ y = ReduceMax<keepdims=0>(x, a) }}",
    "ReduceMin": "({0}[2,6] x) => ({0}[1,1] y) {{ y = ReduceMin(x) }}",
    "TopK": "({0}[2,6] x) => ({0}[2,3] y, int64[2,3] i) <int64[1] k = {{3}}> "
    "{{ y, i = TopK(x, k) }}",
    "Trilu": "({0}[4,6] x) => ({0}[4,6] y) {{ y = Trilu<upper=0>(x) }}",
    "Pow": "(double[2,6] x, {0}[6] z) => (double[2,6] y) {{ y = Pow(x, z) }}",
    "PRelu": "({0}[2,6] x, {0}[6] z) => ({0}[2,6] y) {{ y = PRelu(x, z) }}",
    "Where": "(bool[2,1] c, {0}[2,6] x, {0}[6] z) => ({0}[2,6] y) {{ y = Where(c, x, z) }}",
    "ArgMax": "({0}[2,6] x) => (int64[2,1] y) {{ y = ArgMax<axis=1>(x) }}",
    "ArgMin": "({0}[2,6] x) => (int64[6] y) {{ y = ArgMin<keepdims=0, select_last_index=1>(x) }}",
    "NonZero": "({0}[2,6] x) => (int64[2,N] y) {{ y = NonZero(x) }}",
}
"""Others are of one operand."""


def graph_of(op_type: str, dtype: ir.DataType) -> str:
    default = f"({{0}}[2,6] x) => ({{0}}[2,6] y) {{{{ y = {op_type}(x) }}}}"
    return "g " + GRAPHS.get(op_type, default).format(NAMES[dtype])


ROUGH = ("Gelu", "HardSwish")
"""The bodies that ONNX gives them have constants in single precision."""


def inputs_of(model: ir.Model) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = []
    for value in model.graph.inputs:
        dtype, shape = value.dtype.numpy(), tuple(value.shape)
        if dtype.kind in "ui":
            bounds = np.iinfo(dtype)
            array = rng.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)
        else:
            array = (
                rng.uniform(-0.9, 0.9, shape) if dtype.kind == "f" else rng.integers(0, 2, shape)
            )
        arrays.append(np.asarray(array).astype(dtype))
    if model.graph[0].op_type == "BitShift":
        arrays[1] %= 16
    if model.graph[0].op_type == "Acosh":
        arrays[0] += 2
    return arrays


def test_optimized_models_have_standard_operators_in_their_place() -> None:
    """Other runtimes read no function of a domain of ours."""
    for op_type, dtype in GAPS:
        source = ir.to_proto(text.parse(graph_of(op_type, dtype), OPSET))
        done = smelt.optimize(source, pipeline="cleanup")
        assert not done.functions, (op_type, dtype)
        assert [item.domain for item in done.opset_import] == [""], (op_type, dtype)


@pytest.mark.parametrize("version", [13, OPSET])
@pytest.mark.parametrize(("op_type", "dtype"), GAPS, ids=str)
def test_a_row_computes_what_the_operator_does(
    op_type: str, dtype: ir.DataType, version: int, tmp_path: Path
) -> None:
    if op_type.startswith("Reduce") and "int64[1] a" in graph_of(op_type, dtype) and version < 18:
        version = 18  # where axes became an input
    version = max(version, min(opset.versions(op_type)))
    model = text.parse(graph_of(op_type, dtype), version)
    before = text.canonical(model)
    given = inputs_of(model)
    expected = Reference(model)(*given)
    path = smelt.save(model, tmp_path / "m.onnx")
    assert text.canonical(model) == before
    onnx.checker.check_model(path, full_check=True)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    saved = session.run(None, dict(zip(names, given, strict=True)))
    for run in (saved, OnnxRuntime(model)(*given)):
        for got, want in zip(run, expected, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=2e-7 if op_type in ROUGH else 1e-14)
    assert not smelt.load(path, inline=False).functions
    loaded = smelt.load(smelt.to_proto(model, functions=True))
    assert not loaded.functions
    assert [(node.domain, node.op_type) for node in loaded.graph] == [("", op_type)]


@pytest.mark.parametrize(("op_type", "number"), [("ReduceMax", 0), ("ReduceMin", 2**32 - 1)])
def test_an_extremum_of_nothing_is_a_number_of_the_type(op_type: str, number: int) -> None:
    graph = f"g (uint32[4,N] x) => (uint32[4] y) <int64[1] a = {{1}}> {{ y = {op_type}<keepdims=0>(x, a) }}"
    (y,) = OnnxRuntime(text.parse(graph, 20))(np.zeros((4, 0), np.uint32))
    assert y.tolist() == [number] * 4


@pytest.mark.parametrize("attribute", ['to = "cpu"', "to = 9", 'dtype = "f"'])
def test_attributes_of_unknown_operators_tell_no_type(attribute: str) -> None:
    """Read as element types they stopped a save, or gave a Where of floats the body of logic."""
    graph = f"""g (float[2] a, bool[2] c) => (z) {{
        x = mine.Op<{attribute}>(a) y = mine.Op<{attribute}>(a) z = Where(c, x, y)
    }}"""
    assert not smelt.to_proto(text.parse(graph, 18), functions=True).functions


@pytest.mark.parametrize("dtype", ["int16", "uint16"])
@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("Clip(x, , most)", [1, 3, 3]),
        ("Clip(x, most)", [3, 3, 5]),
        ("Pad(x, pads, , axes)", [0, 1, 3, 5]),
    ],
)
def test_optional_inputs_may_be_left_out_before_others(
    dtype: str, call: str, wanted: list[int]
) -> None:
    model = text.parse(
        f"g ({dtype}[3] x, {dtype} most) => ({dtype}[N] y) "
        f"<int64[2] pads = {{1, 0}}, int64[1] axes = {{0}}> {{ y = {call} }}"
    )
    x, most = np.array([1, 3, 5], dtype), np.array(3, dtype)
    (y,) = open_runner(model, "onnxruntime")(x, most)
    assert y.tolist() == wanted
