"""Formulas keep what their source gives over all numbers, on each target: small, large, 1e38."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import onnx_ir as ir
import pytest
from formulas.table import CONSTANTS, ELEMENTWISE, GAINS, ROWS, Formula

import smelt
from smelt.ir import text
from smelt.ir.floats import float_info, spacing
from smelt.runtime.onnxruntime import OnnxRuntime

ALL = ELEMENTWISE | ROWS
SCALES = (1e-40, 1e-30, 1e-7, 0.1, 1, 5, 20, 40, 100, 1e4, 1e18, 1e38)
NAMES = re.compile(r"\b[a-zA-Z]\w*\b(?!\()")


def inputs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``x`` and ``t``: rows of one magnitude each, one around 1e4, one of all; and labels."""
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        x, t = (np.outer(SCALES, [1] * 16) * rng.normal(size=(len(SCALES), 16)) for _ in "xt")
        x = np.concatenate([x, [1e4 + rng.normal(size=16), rng.permutation(x.ravel())[:16]]])
        t = np.concatenate([t, [1e4 + rng.normal(size=16), rng.permutation(t.ravel())[:16]]])
    x, t = (np.clip(each, -3e38, 3e38).astype(np.float32) for each in (x, t))
    return x, t, rng.uniform(0, 1, x.shape).astype(np.float32)


X, T, LABELS = inputs()
GIVEN = (X, T, LABELS)


def true_of(formula: Formula) -> np.ndarray:
    """The function in float64, which may overflow on the way where float32 does not."""
    wide = [each.astype(np.float64) for each in GIVEN]
    count = formula.true.__code__.co_argcount if hasattr(formula.true, "__code__") else 1
    with np.errstate(all="ignore"):
        return np.asarray(formula.true(*wide[:count]))


@cache
def source() -> ir.Model:
    """All formulas side by side, each with inputs of its own, so that none shares a node."""
    given, made, nodes = [], [], []
    for index, formula in enumerate(ALL.values()):
        nodes.append(NAMES.sub(lambda m, index=index: _own(m[0], index), formula.body))
        given += [f"float[14,16] {name}_{index}" for name in "xtl"]
        made.append(f"float[{','.join(map(str, true_of(formula).shape))}] y_{index}")
    constants = [f"float {name} = {{{np.float32(v)}}}" for name, v in CONSTANTS.items()]
    constants += ["int64[1] axis = {-1}", f"float[16] gains = {{{', '.join(map(str, GAINS))}}}"]
    graph = f"g ({', '.join(given)}) => ({', '.join(made)}) <{', '.join(constants)}> "
    return text.parse(graph + "{ " + "\n".join(nodes) + " }", 20, smelt=1)


def _own(name: str, index: int) -> str:
    shared = name in CONSTANTS or name in ("axis", "gains", "smelt")
    return name if shared else f"{name}_{index}"


@cache
def results(target: str) -> list[np.ndarray]:
    """What ``target`` gives for all formulas; the source itself in ONNX Runtime for an empty one."""
    arrays = GIVEN * len(ALL)
    model = source().clone()
    if target in ("", "optimize"):
        return list(OnnxRuntime(smelt.optimize(model) if target else model)(*arrays))
    name, _, engine = target.partition(" ")
    options = {"engine": engine} if engine else {}
    return [np.asarray(y) for y in smelt.compile(model, target=name, **options)(*arrays)]


def units(formula: Formula, true: np.ndarray) -> np.ndarray:
    """The unit in the last place in which the error of each result is counted."""
    size = np.abs(true)
    if formula.unit == "operand":
        size = np.maximum(np.maximum(size, 1), np.maximum(np.abs(X), np.abs(T)))
    if formula.unit == "row":
        size = np.maximum(np.maximum(size, 1), np.abs(X).max(-1, keepdims=True))
    with np.errstate(all="ignore"):
        unit = spacing(size.astype(np.float64), np.dtype(np.float32))
    return unit + float(float_info(np.dtype(np.float32)).smallest_normal)  # kernels flush below it


@pytest.mark.parametrize("target", ["optimize", "onnx", "ort", "host native", "host numpy", "c"])
@pytest.mark.parametrize("name", ALL)
def test_no_worse_than_its_source(name: str, target: str) -> None:
    """Finite results stay finite; the error is twice that of the source at most, and some ulp."""
    formula, index = ALL[name], list(ALL).index(name)
    true, before, after = true_of(formula), results("")[index], results(target)[index]
    finite = np.isfinite(before) & np.isfinite(true)
    assert np.isfinite(after[finite]).all(), (X[np.broadcast_to(finite, X.shape)], after)
    with np.errstate(all="ignore"):
        error, known = np.abs(after - true), np.abs(before - true)
        excess = np.where(finite, (error - 2 * known) / units(formula, true), 0)
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    place = f"{true[worst]} came as {before[worst]} from the source, as {after[worst]} now"
    assert excess[worst] <= formula.ulp, f"x {X[worst]:g}: {place}, {excess[worst]:.3g} ulp more"


def test_the_table_has_what_a_compiler_fuses() -> None:
    """Otherwise the bounds above hold of nodes that nobody touched."""
    made = {node.op_type for node in smelt.optimize(source().clone()).graph}
    made -= {node.op_type for node in source().graph}
    fused = {"Gelu", "HardSwish", "LayerNormalization", "LeakyRelu", "LogSoftmax"}
    assert made >= fused | {"RMSNormalization"}
    assert len(ALL) >= 45
