"""One node of any operator of ONNX, with operands and attributes drawn by its schema.

``Draw`` draws operands that need not fit together, ``Fitting`` such that are likely to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from random import Random

import onnx
from onnx import TensorProto, defs, helper

OPSET = 20
TYPES = {
    "tensor(float)": TensorProto.FLOAT,
    "tensor(int64)": TensorProto.INT64,
    "tensor(bool)": TensorProto.BOOL,
    "tensor(uint8)": TensorProto.UINT8,
    "tensor(int32)": TensorProto.INT32,
}
INTEGERS = (TensorProto.INT64, TensorProto.INT32)
CARRIERS = ("If", "Loop", "Scan", "SequenceMap")

Dims = Sequence[int | str]


def operators() -> list[str]:
    names = sorted({s.name for s in defs.get_all_schemas() if s.domain == ""})
    return [name for name in names if defs.has(name, OPSET, "") and name not in CARRIERS]


def _type(formal: defs.OpSchema.FormalParameter) -> int | None:
    return next((number for text, number in TYPES.items() if text in formal.types), None)


def _attribute(schema: defs.OpSchema.Attribute, random: Random) -> object:
    drawn = {
        "INT": random.choice((0, 1, -1, 2, 5, -7)),
        "INTS": [random.choice((0, 1, 2, -1, 3)) for _ in range(random.choice((1, 2, 4)))],
        "FLOAT": 1.0,
        "FLOATS": [1.0],
        "STRING": "constant",
    }
    return drawn.get(schema.type.name)


class Draw:
    """One node of an operator, of inputs and constants that need not fit together."""

    def __init__(self, name: str, random: Random, opset: int = OPSET) -> None:
        self.name, self.random, self.opset = name, random, opset
        self.schema = defs.get_schema(name, opset, "")
        self.inputs: list[onnx.ValueInfoProto] = []
        self.weights: list[onnx.TensorProto] = []

    def dtype(self, position: int) -> int | None:
        """The first of ``TYPES`` that an operand may have; None if it has others alone."""
        return _type(self.schema.inputs[position])

    def shape(self, position: int) -> list[int | str] | None:
        """The dims of an operand; None for an unknown rank."""
        drawn = [self.random.choice((0, 1, 2, 3, "N")) for _ in range(self._rank())]
        return drawn if self.random.random() < 0.95 else None

    def _rank(self) -> int:
        return self.random.choice((0, 1, 1, 2, 3, 4))

    def numbers(self, position: int) -> tuple[list[int], list[int]] | None:
        """The dims and the elements of an operand of integers that is a constant."""
        if self.random.random() > 0.6:
            return None
        dims = [
            self.random.choice((0, 1, 2, 3)) for _ in range(self.random.choice((0, 1, 1, 1, 2)))
        ]
        return dims, [self.random.choice((0, 1, -1, 2, -2, 5, -9)) for _ in range(prod(dims))]

    def attributes(self) -> dict[str, object]:
        known = self.schema.attributes.values()
        chosen = [a for a in known if a.required or self.random.random() < 0.3]
        drawn = {a.name: _attribute(a, self.random) for a in chosen}
        return {name: value for name, value in drawn.items() if value is not None}

    def model(self) -> onnx.ModelProto:
        schema = self.schema
        count = max(schema.min_input, self.random.randrange(len(schema.inputs) + 1))
        names = []
        for position in range(count):
            dtype = self.dtype(position)
            names.append("" if dtype is None else f"x{position}")
            given = self.numbers(position) if dtype in INTEGERS else None
            if given is not None:
                self.weights.append(helper.make_tensor(names[-1], dtype, *given))
            elif dtype is not None:
                shape = self.shape(position)
                self.inputs.append(helper.make_tensor_value_info(names[-1], dtype, shape))
        results = [f"y{position}" for position in range(max(1, schema.min_output))]
        node = helper.make_node(self.name, names, results, **self.attributes())
        outputs = [helper.make_empty_tensor_value_info(result) for result in results]
        graph = helper.make_graph([node], "g", self.inputs, outputs, self.weights)
        imports = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, ir_version=10, opset_imports=imports)


SHAPES = {
    "Attention": "2 3 n 4, 2 3 m 4, 2 3 m 4",
    "AveragePool": "n 2 p q",
    "BatchNormalization": "n c p q, c, c, c, c",
    "CenterCropPad": "n 4",
    "Compress": "n 3",
    "Conv": "n c p q, 4 c 2 3, 4",
    "ConvInteger": "n c p q, 4 c 2 3",
    "ConvTranspose": "n c p q, c 2 3 3, 2",
    "DepthToSpace": "n 4 p q",
    "DFT": "n m 1",
    "GRU": "n m 3, 1 6 3, 1 6 2, 1 12",
    "Gemm": "n c, c m, m",
    "GlobalAveragePool": "n 2 p q",
    "GlobalLpPool": "n 2 p q",
    "GlobalMaxPool": "n 2 p q",
    "GridSample": "n 2 p q, n 3 m 2",
    "GroupNormalization": "n 4 m, 2, 2",
    "InstanceNormalization": "n c p q, c, c",
    "LRN": "n c p q",
    "LSTM": "n m 3, 1 8 3, 1 8 2, 1 16",
    "LayerNormalization": "n m 4, 4, 4",
    "LpPool": "n 2 p q",
    "MatMul": "n p c, c m | c, n c m | n p c, c | 1 p c, n c m | n p c, n c m | 0 c, c 0",
    "MatMulInteger": "n c, c m",
    "MaxPool": "n 2 p q",
    "NegativeLogLikelihoodLoss": "n c, n",
    "NonZero": "n m",
    "OneHot": "n m, , 2",
    "PRelu": "n c m, c m",
    "RNN": "n m 3, 1 2 3, 1 2 2, 1 4",
    "ScatterElements": "n m, 2 2, 2 2",
    "SoftmaxCrossEntropyLoss": "n c, n",
    "SpaceToDepth": "n c 4 6",
    "Trilu": "n m 3",
}
"""Operands by operator, where they are not shapes of one kind: letters are sizes, 3 at least, and a
bar is between alternatives."""

ATTRIBUTES: dict[str, dict[str, Sequence[object]]] = {
    "AveragePool": {"kernel_shape": ([2, 2], [1, 3])},
    "Conv": {"kernel_shape": ([2, 3],)},
    "ConvInteger": {"kernel_shape": ([2, 3],)},
    "ConvTranspose": {"kernel_shape": ([3, 3],)},
    "DepthToSpace": {"blocksize": (2,)},
    "Einsum": {"equation": ("...->...", "i...->...")},
    "GRU": {"hidden_size": (2,)},
    "GroupNormalization": {"num_groups": (2,)},
    "LSTM": {"hidden_size": (2,)},
    "LpPool": {"kernel_shape": ([2, 2], [1, 3])},
    "MaxPool": {"kernel_shape": ([2, 2], [1, 3])},
    "RNN": {"hidden_size": (2,)},
    "SpaceToDepth": {"blocksize": (2,)},
}
BY_NAME: dict[str, Sequence[object]] = {
    "auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "ceil_mode": (0, 1),
    "direction": ("LEFT", "RIGHT"),
    "dilations": ([1, 1], [2, 1], [1, 2]),
    "mode": ("constant", "edge", "reflect", "bilinear", "DCR", "CRD"),
    "pads": ([0, 1, 0, 1], [1, 0, 1, 1], [1, 1]),
    "strides": ([1, 1], [2, 1], [1, 2]),
    "to": (1, 6, 7, 9),
    "dtype": (1, 6, 7),
}
FLAGS = ("keepdims", "noop_with_empty_axes", "select_last_index", "batch_dims", "storage_order")
RECURRENT = ("GRU", "LSTM", "RNN")


ENDS = 2**63 - 1, 2**31 - 1, -(2**63)


def _target(f: Fitting) -> list[int]:
    """A Reshape that keeps some dims and infers one by -1."""
    kept = f.random.randint(0, f.rank)
    return [*[0] * kept, *f.random.choice(([-1], [1, -1], [-1, 1], [-1, 2]))]


NUMBERS: dict[str, dict[int, Callable[[Fitting], list[int] | int]]] = {
    "CenterCropPad": {1: lambda f: [f.random.randint(1, 5)]},
    "Expand": {1: lambda f: [*[2] * f.random.randint(0, 1), *[1] * f.rank]},
    "MelWeightMatrix": {1: lambda f: 8, 2: lambda f: 100},
    "OneHot": {1: lambda f: f.random.choice((3, [4]))},
    "Pad": {1: lambda f: [f.random.choice((0, 0, 1, 2, -1)) for _ in range(2 * f.rank)]},
    "Range": {
        i: lambda f, i=i: (1, f.random.randint(0, 7), f.random.choice((1, 2)))[i] for i in range(3)
    },
    "Reshape": {1: _target},
    "Slice": {
        1: lambda f: [f.random.choice((0, 1, -1, -2, 9, -9, -(2**63))) for _ in f.axes],
        2: lambda f: [f.random.choice((0, 1, -1, 2, 9, -9, *ENDS)) for _ in f.axes],
        3: lambda f: f.axes,
        4: lambda f: [f.random.choice((1, 1, 2, 3, -1, -2)) for _ in f.axes],
    },
    "Split": {1: lambda f: [1, 1]},
    "Squeeze": {1: lambda f: f.axes},
    "Tile": {1: lambda f: [f.random.randint(0, 3) for _ in range(f.rank)]},
    "TopK": {1: lambda f: [f.random.randint(1, 2)]},
    "Unsqueeze": {1: lambda f: f.axes},
}
"""Elements of operands that are constants, by operator and place; a number is a scalar."""


class Fitting(Draw):
    """The same of shapes that are likely to fit together."""

    def __init__(self, name: str, random: Random, opset: int) -> None:
        super().__init__(name, random, opset)
        self.rank = random.choice((1, 2, 2, 3, 3, 4))
        self.base: list[int | str] = [
            random.choice((1, 2, 3, 4, "N", "M")) for _ in range(self.rank)
        ]
        letters = {letter: random.choice((3, 4, "N", "M")) for letter in "nmpq"}
        self.letters: dict[str, int | str] = {**letters, "c": 3}
        self.listed = random.choice(SHAPES.get(name, "").split("|")).split(",")
        self.axes = random.sample(range(-self.rank, 0), random.randint(1, self.rank))

    def dtype(self, position: int) -> int | None:
        counts = self.name == "Mod" or position in NUMBERS.get(self.name, {})
        takes = "tensor(int64)" in self.schema.inputs[position].types
        return TensorProto.INT64 if counts and takes else super().dtype(position)

    def shape(self, position: int) -> list[int | str] | None:
        listed = self.listed
        if position < len(listed) and listed[position].strip():
            return [
                self.letters[each] if each in self.letters else int(each)
                for each in listed[position].split()
            ]
        kind = self.random.random()
        if kind < 0.6:
            return self.base
        if kind < 0.75:
            place = self.random.randrange(self.rank)
            return [1 if axis == place else dim for axis, dim in enumerate(self.base)]
        if kind < 0.85:
            return self.base[self.random.randrange(self.rank) :]
        return [] if kind < 0.9 else list(reversed(self.base))

    def numbers(self, position: int) -> tuple[list[int], list[int]] | None:
        table = NUMBERS.get(self.name, {})
        if position in table:
            found = table[position](self)
            return ([len(found)], found) if isinstance(found, list) else ([], [found])
        if self.schema.inputs[position].name == "indices" or self.name == "Mod":
            return None
        count = self.random.choice((0, 1, 1, 2, self.rank, 2 * self.rank))
        small = (0, 1, 1, 2, 3, -1, *range(self.rank))
        dims = [count] if self.random.random() < 0.8 else []
        return dims, [self.random.choice(small) for _ in range(prod(dims))]

    def attributes(self) -> dict[str, object]:
        known = super().attributes()
        axes = range(-self.rank, self.rank)
        for name in list(known):
            if name in BY_NAME:
                known[name] = self.random.choice(BY_NAME[name])
            elif name == "axis":
                known[name] = self.random.choice(axes)
            elif name in FLAGS:
                known[name] = self.random.choice((0, 1))
            elif name in ("axes", "perm"):
                count = self.rank if name == "perm" else self.random.randint(1, self.rank)
                known[name] = self.random.sample(range(self.rank), count)
        if self.name in RECURRENT:
            known.clear()
        if known.get("auto_pad", "NOTSET") != "NOTSET":
            known.pop("pads", None)  # ONNX forbids both
            known.pop("dilations", None)  # ONNX Runtime pads as if there were none
        if self.name == "Constant":
            known = dict([*known.items()][:1])
        for name, choices in ATTRIBUTES.get(self.name, {}).items():
            known[name] = self.random.choice(choices)
        return known
