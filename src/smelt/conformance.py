"""The conformance suite of targets: what a target must do to be called one.

A vendor runs it on a target of their own as we run it on ours::

    for case in CASES:
        conform(my_target, case)

Each case either compiles and agrees with its source, or is refused with a coded error before
any file exists. The same case compiled twice gives the same bytes. ``conform_all`` runs all of
them, holds the target to what it declares to take, and refuses one that takes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from time import perf_counter
from typing import Literal

import numpy as np
import onnx_ir as ir

from smelt.check.verify import verify
from smelt.compiler import compile_model
from smelt.errors import Mismatch, SmeltError, Unsupported
from smelt.ir import text
from smelt.native.kernels.foreign import CKernel, add
from smelt.runtime.inputs import random_inputs
from smelt.runtime.interface import Value, interface_of
from smelt.targets.base import Artifact, Target
from smelt.targets.watch import verify_phase, watching_phases

RUNS = 5
"""Runs of which the shortest counts."""


@dataclass(frozen=True)
class Case:
    """A model as ONNX text, and the sizes of its symbolic dims.

    ``undefined`` marks a model that no target can run.
    """

    name: str
    graph: str
    dims: Mapping[str, int] = field(default_factory=dict)
    undefined: bool = False


def _graph(interface: str, body: str) -> str:
    return f"g {interface} {{ {body} }}"


_W = "w = Constant<value = float[4,3] {1,2,3,-4,5,6,7,-8,9,1,0.5,-2}>()"
_SMALL = ",".join(str(7 * n % 11 - 5) for n in range(54))

CASES = (
    Case("identity", _graph("(float[2,3] x) => (float[2,3] y)", "y = Identity(x)")),
    Case("elementwise", _graph("(float[2,3] x) => (float[2,3] y)", "a = Exp(x) y = Tanh(a)")),
    Case(
        "broadcasting",
        _graph("(float[2,3] x, float[3] b) => (float[2,3] y)", "a = Add(x, b) y = Relu(a)"),
    ),
    Case(
        "a dense layer",
        _graph(
            "(float[5,4] x) => (float[5,3] y)",
            f"{_W} b = Constant<value = float[3] {{1,-1,0}}>() m = MatMul(x, w) y = Add(m, b)",
        ),
    ),
    Case(
        "a symbolic batch",
        _graph("(float[B,4] x) => (float[B,3] y)", f"{_W} m = MatMul(x, w) y = Relu(m)"),
    ),
    Case(
        "a bound batch",
        _graph("(float[B,4] x) => (float[B,3] y)", f"{_W} m = MatMul(x, w) y = Relu(m)"),
        {"B": 2},
    ),
    Case(
        "a convolution",
        _graph(
            "(float[1,1,5,5] x) => (float[1,2,3,3] y)",
            "w = Constant<value = float[2,1,3,3] "
            "{1,2,3,4,5,6,7,8,9,-1,-2,-3,-4,-5,-6,-7,-8,-9}>() c = Conv(x, w) y = Relu(c)",
        ),
    ),
    Case(
        "a value read twice and returned",
        _graph("(float[4] x) => (float[4] y, float[4] z)", "y = Neg(x) a = Abs(y) z = Mul(a, y)"),
    ),
    Case("an empty tensor", _graph("(float[0,3] x) => (float[0,3] y)", "y = Neg(x)")),
    Case("rank 0", _graph("(float x) => (float y)", "y = Neg(x)")),
    Case(
        "int8",
        _graph(
            "(float[1,2,6,6] x) => (float[1,3,4,4] y)",
            "s = Constant<value_float = 0.25>() z = Constant<value = int8 {-3}>() "
            "v = Constant<value_float = 0.5>() o = Constant<value = int8 {0}>() "
            f"w = Constant<value = int8[3,2,3,3] {{{_SMALL}}}>() q = QuantizeLinear(x, s, z) "
            "d = DequantizeLinear(q, s, z) e = DequantizeLinear(w, v, o) c = Conv(d, e) "
            "r = Relu(c) p = QuantizeLinear(r, v, z) y = DequantizeLinear(p, v, z)",
        ),
    ),
    Case(
        "fp16",
        _graph(
            "(float16[3,4] x, float16[4,5] w) => (float16[3,5] y)", "m = MatMul(x, w) y = Relu(m)"
        ),
    ),
    Case(
        "more than a scratchpad holds",
        _graph(
            "(float[1,8,64,64] x, float[8,8,3,3] w) => (float[1,8,64,64] y)",
            "a = Conv<pads = [1,1,1,1]>(x, w) r = Relu(a) b = Conv<pads = [1,1,1,1]>(r, w) "
            "y = Add(b, x)",
        ),
    ),
    Case(
        "a network with every category",
        _graph(
            "(float[1,2,8,8] x, float[4,2,3,3] w, float[4] g, float[32,5] d, int64[2] i) => "
            "(float[1,5] y, float[1,2] z, int64[1,1] n)",
            "h = Sigmoid(g) c = Conv<pads = [1,1,1,1]>(x, w, g) "
            "b = BatchNormalization(c, h, g, g, h) r = Relu(b) p = MaxPool<kernel_shape = [2,2], "
            "strides = [2,2]>(r) u = AveragePool<kernel_shape = [2,2], strides = [2,2]>(r) "
            "v = Add(p, u) t = Transpose<perm = [0,2,3,1]>(v) k = Concat<axis = 1>(t, t) "
            "s0 = Constant<value_ints = [0]>() s1 = Constant<value_ints = [2]>() "
            "e0 = Constant<value_ints = [1]>() l = Slice(k, s0, s1, e0) f = Flatten(l) "
            "m = MatMul(f, d) y = Softmax(m) z = Gather<axis = 1>(y, i) n = ArgMax<axis = 1>(y)",
        ),
    ),
    Case(
        "an operator nobody has",
        _graph("(float[4] x) => (float[4] y)", "y = nobody.Nothing(x)"),
        undefined=True,
    ),
)

Outcome = Literal["agrees", "compiles", "elsewhere", "refused"]


@dataclass(frozen=True)
class Result:
    """What became of a case, and the seconds of a run: here, and on the reference, the host."""

    outcome: Outcome
    seconds: float | None = None
    reference: float | None = None


def conform_all(target: Target, cases: Sequence[Case] = CASES) -> dict[str, Result]:
    """Each of ``cases`` by name: see ``conform``.

    Raises Mismatch E705 also if the target agrees on none: what takes nothing is no target.
    """
    results = {case.name: _timed(target, case, conform(target, case)) for case in cases}
    if all(result.outcome not in ("agrees", "compiles") for result in results.values()):
        raise Mismatch(
            "E705",
            f"target {target.name!r} does not conform: it takes none of {len(results)} cases",
            why=", ".join(f"{name}: {each.outcome}" for name, each in results.items()),
            fix="widen its limits, or give cases of your own that it should take",
        )
    return results


def conform(target: Target, case: Case) -> Outcome:
    """Compile ``case`` for ``target`` and check what comes out, after each phase too.

    Returns "refused" if the target refuses it with a coded Unsupported, "elsewhere" if its
    fallback runs all of it, "compiles" if nothing here can run what it makes. Raises Mismatch E705
    if a promise is broken: other numbers, other bytes the second time, unsafe file names, tensors
    that share bytes, or a refusal of what its limits and ``accepts`` declare that it takes; a
    memory that is too small (E405) may be told late.
    """
    source = text.parse(case.graph)
    took: list[object] = []
    begun = {"before schedule": (took.append, *target.around.get("before schedule", ()))}
    watched = replace(target, around={**target.around, **begun})
    try:
        with watching_phases(verify_phase):
            artifact = compile_model(source, target=watched, dims=case.dims)
    except SmeltError as error:
        if not isinstance(error, Unsupported) and error.code[:2] not in ("E2", "E4"):
            why = f"it refuses with {error.code}, not E2xx or E4xx: {error}"
            raise _broken(target, case, why) from error
        if took and not case.undefined and error.code != "E405":
            why = f"it refuses with {error.code} what its limits take: {error}"
            raise _broken(target, case, why) from error
        return "refused"
    _check_files(target, case, artifact)
    again = compile_model(text.parse(case.graph), target=target, dims=case.dims)
    if dict(again.files) != dict(artifact.files):
        raise _broken(target, case, "two compiles gave different bytes")
    if artifact.load is None:
        return "elsewhere" if _nodes_here(target, artifact) == 0 else "compiles"
    if case.undefined:
        return _refuses_to_run(target, case, artifact)
    verify(source, artifact, dims=case.dims or None).check()
    return "elsewhere" if _nodes_here(target, artifact) == 0 else "agrees"


def _nodes_here(target: Target, artifact: Artifact) -> int | None:
    """How many nodes a target with a fallback took itself; None without other parts."""
    return artifact.plan.facts.get(f"nodes on {target.name}")


def _timed(target: Target, case: Case, outcome: Outcome) -> Result:
    """The outcome with seconds, where the case runs here and has sizes."""
    if outcome != "agrees" or case.undefined:
        return Result(outcome)
    made = [
        compile_model(text.parse(case.graph), target=each, dims=case.dims)
        for each in (target, "host")
    ]
    if made[0].load is None or interface_of(made[0].model).symbols():
        return Result(outcome)
    inputs = random_inputs(made[0].model, {})
    return Result(outcome, *(_seconds(artifact, inputs) for artifact in made))


def _seconds(artifact: Artifact, inputs: Sequence[Value]) -> float:
    """The shortest of a few runs after a first one."""
    artifact(*inputs)
    taken = []
    for _ in range(RUNS):
        begun = perf_counter()
        artifact(*inputs)
        taken.append(perf_counter() - begun)
    return min(taken)


def check_kernel(kernel: CKernel) -> None:
    """Build ``kernel`` with a C compiler and run its examples against the operator's reference.

    Raises Mismatch E705 for other numbers; NaN agrees with NaN.
    """
    add(kernel)
    operator = kernel.operator
    for arrays, attributes in kernel.examples:
        spelled = {a.name: attributes.get(a.name, a.default) for a in operator.attributes}
        absent = (None,) * (len(operator.inputs) - len(arrays))
        expected = operator.reference((*arrays, *absent), spelled)
        inputs = [
            ir.Value(name=name.rstrip("?"), type=ir.TensorType(dtype), shape=ir.Shape(array.shape))
            for name, array in zip(operator.inputs, arrays, strict=False)
            for dtype in [ir.DataType.from_numpy(array.dtype)]
        ]
        given = [ir.convenience.convert_attribute(*pair) for pair in attributes.items()]
        node = ir.Node(
            operator.domain, operator.name, inputs, given, num_outputs=len(operator.outputs)
        )
        imports = {"": 21, operator.domain: operator.version}
        for name, value, result in zip(operator.outputs, node.outputs, expected, strict=True):
            value.name = f"{name.rstrip('?')}_out"
            value.type = ir.TensorType(ir.DataType.from_numpy(result.dtype))
            value.shape = ir.Shape(result.shape)
        graph = ir.Graph(inputs, node.outputs, nodes=[node], opset_imports=imports, name="kernel")
        artifact = compile_model(ir.Model(graph, ir_version=10), target="c")
        for got, wanted in zip(artifact(*arrays), expected, strict=True):
            assert isinstance(got, np.ndarray)
            if not np.allclose(got, wanted, rtol=1e-5, atol=1e-6, equal_nan=True):
                raise Mismatch(
                    "E705",
                    f"the C kernel of {operator.domain}.{operator.name} is not its reference",
                    why=f"it gives {got.reshape(-1)[:4]} for {np.asarray(wanted).reshape(-1)[:4]}",
                )


def _refuses_to_run(target: Target, case: Case, artifact: Artifact) -> Outcome:
    """A portable file may keep an operator that only its reader knows; running it may not."""
    try:
        artifact(np.ones(4, np.float32))
    except Unsupported:
        return "refused"
    raise _broken(target, case, "it runs an operator that nobody defined")


def _check_files(target: Target, case: Case, artifact: Artifact) -> None:
    for name, data in artifact.files.items():
        path = PurePosixPath(name)
        if not isinstance(data, bytes | bytearray | memoryview):
            raise _broken(target, case, f"the file {name!r} holds no bytes: {repr(data)[:40]}")
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise _broken(target, case, f"the file name {name!r} leaves the output folder")


def _broken(target: Target, case: Case, why: str) -> Mismatch:
    return Mismatch("E705", f"target {target.name!r} does not conform: {case.name}", why=why)
