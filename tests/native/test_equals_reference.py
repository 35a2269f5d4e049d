"""C computes what ONNX Runtime does: drawn operators, types, layouts, sizes and fused steps.

A case is an operator of ``OPERATORS`` on operands that lie in memory in one of ``LAYOUTS``, of
sizes that are known or that each run decides, followed by steps that may be fused into it. The
result before the steps is returned, too, in every third case: then nothing is fused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir
import pytest
from c_library import STRICT
from sized_library import Sized, SizedLibrary

from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference

FLOATS, INTEGERS = ("float", "double"), ("int32", "int64")
NUMBERS = (*FLOATS, *INTEGERS)
BYTES = ("int8", "uint8")
HALF = ("float16",)
EVERY = (*NUMBERS, *BYTES, *HALF, "bool")
ONE = ("float",)

Shapes = Sequence[str]
"""Of operands: dims by commas; a letter is a size, one of the run if it is N, H or W."""

OPERATORS: dict[str, tuple[Sequence[str], Shapes, Sequence[str]]] = {
    "elementwise": (
        [f"{op}(x)" for op in ("Relu", "Tanh", "Sigmoid", "Erf", "Exp", "Softplus", "HardSwish", "Mish")]
        + ["Elu<alpha=0.5>(x)", "LeakyRelu<alpha=0.25>(x)"],
        ["N,C,W", "3,N", "W"], ONE,
    ),
    "signs": ([f"{op}(x)" for op in ("Abs", "Neg", "Sign")], ["N,C,W", "W"], (*NUMBERS, "int8")),
    "binary": (
        [f"{op}(x, z)" for op in ("Add", "Sub", "Mul", "Max", "Min")],
        ["N,C,W;N,C,W", "N,C,W;C,1", "1,W;N,C,1", "W;", "N,1,W;1,C,1"], NUMBERS,
    ),
    "quotient": (["Div(x, z)", "Pow(x, x)"], ["N,C,W;W", "3,5;3,5"], FLOATS),
    "comparison": (
        [f"{op}(x, z)" for op in ("Less", "GreaterOrEqual", "Equal")],
        ["N,C,W;N,C,W", "N,C,W;C,1"], NUMBERS,
    ),
    "moves": (
        ["Transpose(x)", "Transpose<perm=[0,2,1]>(x)", "Transpose<perm=[1,0,2]>(x)", "Flatten(x)",
         "Concat<axis=1>(x, x)", "Concat<axis=-1>(x, x)", "Concat<axis=0>(x, x)"],
        ["N,C,W", "2,3,W", "N,16,3", "5,7,2"], EVERY,
    ),
    "sums": (
        [f"{op}<keepdims={keep}>(x, [{axes}])" for op in ("ReduceL2", "ReduceMax", "ReduceMin",
         "ReduceMean", "ReduceProd", "ReduceLogSumExp") for axes, keep in (("0", 1), ("-1", 0), ("1,2", 1))],
        ["N,C,W", "4,3,20"], FLOATS,
    ),
    "integer sums": (
        ["ReduceMax(x, [0])", "ReduceMin(x, [1])", "ReduceProd<keepdims=0>(x, [1])"],
        ["N,3,W"], INTEGERS,
    ),
    "places": (
        [f"{op}<axis={axis}, select_last_index={last}>(x)"
         for op in ("ArgMax", "ArgMin") for axis, last in ((0, 0), (-1, 1))],
        ["N,C,W", "2,30"], (*FLOATS, "int32"),
    ),
    "rows": (
        ["Softmax(x)", "LogSoftmax<axis=1>(x)", "Softmax<axis=0>(x)", "LpNormalization(x)"],
        ["N,C,W", "3,17", "N,40"], FLOATS,
    ),
    "layer norm": (["LayerNormalization(x, z)"], ["N,C,12;12", "5,33;33"], ONE),
    "products": (
        ["MatMul(x, z)"],
        ["N,9;9,12", "2,N,9;9,12", "3,5,W;3,W,12", "N,1,4,6;3,6,5", "1,9;9,70", "N,9;9", "9;9,33",
         "20,W;W,1"], FLOATS,
    ),
    "gemm": (
        ["Gemm<transB=1>(x, z)", "Gemm<alpha=0.5, transB=1>(x, z)"], ["N,9;12,9", "1,9;40,9"], FLOATS,
    ),
    "integer products": (["MatMul(x, z)"], ["N,9;9,12", "2,5,W;W,3"], INTEGERS),
    "convolution": (
        ["Conv(x, z)", "Conv<pads=[1,1,1,1]>(x, z)", "Conv<strides=[2,1], pads=[1,0,0,1]>(x, z)",
         "Conv<dilations=[1,2], pads=[2,2,2,2]>(x, z)"],
        ["N,4,H,W;8,4,3,3", "1,4,9,17;5,4,3,3", "1,5,8,7;7,5,3,2", "N,4,H,W;6,4,1,1", "2,6,9,9;7,6,1,1"],
        ONE,
    ),
    "bias": (
        ["Conv(x, z, b)", "Conv<pads=[1,0,0,1]>(x, z, b)", "Conv<strides=[2,2]>(x, z, b)"],
        ["N,4,H,W;8,4,3,3;8", "2,6,9,9;7,6,1,1;7", "1,4,3,3;5,4,3,3;5"], ONE,
    ),
    "one pixel": (["Conv(x, z)"], ["1,4,3,3;5,4,3,3", "1,6,1,1;9,6,1,1"], ONE),
    "lines": (["Conv(x, z)", "Conv<strides=[2], pads=[1,1]>(x, z)"], ["N,4,20;6,4,3", "1,3,W;40,3,5"], ONE),
    "volumes": (["Conv<pads=[1,0,0,0,1,1]>(x, z)"], ["1,2,4,5,6;3,2,2,2,3"], ONE),
    "depthwise": (
        ["Conv<group=6, pads=[1,1,1,1]>(x, z)", "Conv<group=6, strides=[2,2]>(x, z)"],
        ["N,6,H,W;6,1,3,3", "1,6,9,20;12,1,3,3"], ONE,
    ),
    "groups": (["Conv<group=2>(x, z)"], ["1,6,8,9;8,3,3,3", "N,6,7,7;8,3,1,1"], ONE),
    "transposed": (
        ["ConvTranspose(x, z)", "ConvTranspose<strides=[2,2], pads=[1,0,0,1]>(x, z)"],
        ["1,4,5,6;4,3,3,3", "1,9,6,7;9,4,2,2"], ONE,
    ),
    "pools": (
        ["MaxPool<kernel_shape=[3,2], strides=[2,1]>(x)", "MaxPool<kernel_shape=[2,2], pads=[1,0,0,1]>(x)",
         "AveragePool<kernel_shape=[2,3], pads=[1,1,1,1], count_include_pad=1>(x)",
         "AveragePool<kernel_shape=[3,3], strides=[2,2]>(x)", "GlobalAveragePool(x)", "GlobalMaxPool(x)"],
        ["N,3,H,W", "1,2,9,33"], ONE,
    ),
}  # fmt: skip

LAYOUTS = ("dense", "dense", "turned", "cut", "constant")
SIZES = {"N": (1, 5), "H": (5, 11), "W": (5, 19)}
STEPS = ("Relu", "Neg", "Abs", "Tanh", "Exp", "Clip", "scaled", "shifted", "added", "reread")
CODES = {"float": 1, "double": 11}


@dataclass
class Case:
    """One graph, drawn line by line."""

    rng: np.random.Generator
    open: bool
    inputs: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    values: dict[str, np.ndarray] = field(default_factory=dict)
    sizes: dict[str, str] = field(default_factory=dict)

    def dims(self, shape: str) -> list[str]:
        """The sizes of an operand; letters that are no size of the run are drawn once."""
        known = {"C": str(self.rng.integers(2, 7))}
        if not self.open:
            known |= {n: str(self.rng.integers(low, high)) for n, (low, high) in SIZES.items()}
        self.sizes = known | self.sizes
        return [self.sizes.get(dim, dim) for dim in shape.split(",") if dim]

    def operand(self, name: str, kind: str, dims: list[str]) -> None:
        """``name`` as an input, a constant, or what a Transpose or a Slice of an input gives."""
        layout, whole = str(self.rng.choice(LAYOUTS)), list(dims)
        if layout == "constant" and name != "x" and not set(dims) & set(SIZES):
            shape = tuple(map(int, dims))
            drawn = self.rng.uniform(-2, 2, shape).astype(ir.DataType[kind.upper()].numpy())
            self.values[name] = np.asarray(drawn)
        source = name
        if layout == "turned" and len(dims) > 1:
            source, whole = f"{name}0", dims[::-1]
            self.lines.append(f"{name} = Transpose({source})")
        elif layout == "cut" and dims and dims[-1].isdigit():
            source, whole = f"{name}0", [*dims[:-1], str(int(dims[-1]) + 3)]
            ends = ", ".join(f"{name}{end}" for end in "fea")
            for end, at in zip("fea", (2, int(dims[-1]) + 2, len(dims) - 1), strict=True):
                self.lines.append(f"{name}{end} = Constant<value_ints=[{at}]>()")
            self.lines.append(f"{name} = Slice({source}, {ends})")
        self.inputs.append(f"{kind}[{','.join(whole)}] {source}" if whole else f"{kind} {source}")

    def graph(self, result: str) -> str:
        return f"g ({', '.join(self.inputs)}) => ({result}) {{ {' '.join(self.lines)} }}"

    def step(self, number: int, kind: str, shape: list[str]) -> None:
        """One more line on ``r<number>``, the result so far."""
        how, x, y = str(self.rng.choice(STEPS)), f"r{number}", f"r{number + 1}"
        if how in ("scaled", "shifted", "Clip"):
            for name in ("l", "h"):
                number_ = -0.5 if name == "l" else 1.5
                self.lines.append(f"{name}f{y} = Constant<value_float={number_}>()")
                self.lines.append(f"{name}{y} = Cast<to={CODES[kind]}>({name}f{y})")
        call = {
            "Clip": f"Clip({x}, l{y}, h{y})", "scaled": f"Mul({x}, h{y})", "shifted": f"Sub(l{y}, {x})",
            "added": f"Add({x}, b{y})", "reread": f"Add({x}, {x})",
        }.get(how, f"{how}({x})")  # fmt: skip
        if how == "added":
            if not all(dim.isdigit() or dim in SIZES for dim in shape):
                call = f"Neg({x})"
            else:
                self.inputs.append(f"{kind}[{','.join(shape)}] b{y}")
        self.lines.append(f"{y} = {call}")


def case(seed: int) -> Sized:
    """The graph of a seed; operators come by turns, so that a few dozen seeds reach all."""
    rng = np.random.default_rng(seed)
    calls, shapes, kinds = list(OPERATORS.values())[seed % len(OPERATORS)]
    drawn = Case(rng, open=bool(rng.integers(2)))
    kind = str(rng.choice(list(kinds)))
    for name, shape in zip("xzb", str(rng.choice(list(shapes))).split(";"), strict=False):
        drawn.operand(name, kind, drawn.dims(shape))
    call, _, axes = str(rng.choice(list(calls))).partition(", [")
    if axes:
        drawn.lines.append(f"a = Constant<value_ints=[{axes.removesuffix(')')}>()")
    drawn.lines.append(f"r0 = {call}{', a)' if axes else ''}")
    model = text.parse(drawn.graph("r0"), 19)
    ShapeInference(model).infer_model()
    result = model.graph.outputs[0]
    assert result.shape is not None
    returned, made = ["r0"], 0
    if result.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE) and kind in CODES:
        shape = [str(dim) for dim in result.shape.dims]
        for _ in range(int(rng.integers(4))):
            drawn.step(made, kind, shape)
            made += 1
        returned = [f"r{made}"] + (["r0"] if made and seed % 3 == 0 else [])
    graph = drawn.graph(", ".join(returned))
    bounds = {name: SIZES[name] for name in SIZES if f"{name}," in graph or f"{name}]" in graph}
    return Sized(graph, bounds, drawn.values)


def check(seeds: range, flags: Sequence[str] = STRICT) -> Iterator[str]:
    """Compile the cases of ``seeds`` in one library; give what is wrong with each that is."""
    cases = {f"{seed}: {(sized := case(seed)).graph}": sized for seed in seeds}
    library = SizedLibrary(cases, flags)
    for name, sized in cases.items():
        for sizes in sized.trials(1) if sized.bounds else [{}]:
            try:
                library.check(name, sizes)
            except AssertionError as error:
                yield f"{name} at {sizes}: {error}"


@pytest.mark.parametrize("first", [0, 24])
def test_c_computes_what_onnx_runtime_does(first: int) -> None:
    assert not list(check(range(first, first + 24)))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 1100, 50))
@pytest.mark.parametrize(
    "flags", [STRICT, ("-std=c99", "-w", "-O3", "-march=native")], ids=["c99", "O3"]
)
def test_more_of_it(first: int, flags: Sequence[str]) -> None:
    assert not list(check(range(first, first + 50), flags))
