"""Up to which opset a model may be raised and ONNX Runtime still loads it."""

from __future__ import annotations

from collections import defaultdict

import pytest
from onnx import defs
from onnxruntime.capi import onnxruntime_pybind11_state as kernels

from smelt.compiler import HIGHEST_OPSET, optimize_model
from smelt.ir import text
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.targets.onnx.last_opsets import LAST_OPSETS

NO_END = 2**31 - 1


def _has_kernel(ranges: list[tuple[int, int]], since: int) -> bool:
    """Kernels without a last version are of the version that they begin with, and no other."""
    return any(since == low if high == NO_END else low <= since <= high for low, high in ranges)


def test_the_table_is_what_the_runtime_lacks() -> None:
    ranges = defaultdict(list)
    for kernel in kernels.get_all_opkernel_def():
        if not kernel.domain and kernel.provider == "CPUExecutionProvider":
            ranges[kernel.op_name].append(kernel.version_range)
    lost = {}
    for name, found in ranges.items():
        for version in range(13, HIGHEST_OPSET):
            if not (defs.has(name) and defs.get_schema(name).since_version >= version):
                continue
            now, later = (_since(name, at) for at in (version, version + 1))
            if now and _has_kernel(found, now) and not _has_kernel(found, later):
                lost[name] = version
    later_releases_have = {"LpNormalization": 21}
    assert lost | later_releases_have == LAST_OPSETS


def _since(name: str, opset: int) -> int:
    try:
        return defs.get_schema(name, opset).since_version
    except defs.SchemaError:
        return 0


RMS_NORM = """
    g (float[B,8] x, float[8] s{more}) => (float[B,8] y, float{shape} z) {{
        two = Constant<value_float=2.0>() e = Constant<value_float=1e-5>()
        q = Pow(x, two) m = ReduceMean<axes=[-1]>(q) a = Add(m, e) r = Sqrt(a)
        n = Div(x, r) y = Mul(n, s) z = {call}
    }}
"""
CALLS = {
    "GlobalLpPool": ("GlobalLpPool(i)", ", float[2,3,8,8] i", "[2,3,1,1]"),
    "LpNormalization": ("LpNormalization(y)", "", "[B,8]"),
    "RoiAlign": (
        "RoiAlign(i, r0, k)",
        ", float[2,3,8,8] i, float[5,4] r0, int64[5] k",
        "[5,3,1,1]",
    ),
    "RandomUniformLike": ("RandomUniformLike(x)", "", "[B,8]"),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_model_is_raised_to_where_it_does_not_load(name: str) -> None:
    call, more, shape = CALLS[name]
    model = text.parse(RMS_NORM.format(call=call, more=more, shape=shape), 17)
    optimize_model(model)
    assert model.opset_imports[""] <= LAST_OPSETS[name]
    OnnxRuntime(model)


def test_other_models_are() -> None:
    model = text.parse(RMS_NORM.format(call="Relu(y)", more="", shape="[B,8]"), 17)
    optimize_model(model)
    assert model.opset_imports[""] == HIGHEST_OPSET
