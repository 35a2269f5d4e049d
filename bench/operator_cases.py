"""The rows of ``bench.c_operators`` as models: ``operators.txt`` says how it is read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

_WORD = re.compile(r"(const )?(\w+)(?:<(\d+))?\[(.*)\]")
TYPES = {
    "float": np.float32,
    "double": np.float64,
    "int8": np.int8,
    "uint8": np.uint8,
    "int32": np.int32,
    "int64": np.int64,
    "bool": np.bool_,
}


@dataclass(frozen=True)
class Case:
    """One row: its name, the text of its nodes, and their values by name."""

    name: str
    text: str
    values: dict[str, str]

    def model(self) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        """The model, and the arrays to feed to it."""
        rng = np.random.default_rng(0)
        arrays = {name: made(value, rng) for name, value in self.values.items()}
        fed = {name: arrays[name] for name, value in self.values.items() if value[0].isalpha()}
        fed = {name: array for name, array in fed.items() if "const " not in self.values[name]}
        inputs = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in fed.items()
        ]
        weights = [numpy_helper.from_array(arrays[n], n) for n in arrays if n not in fed]
        nodes = [parser.parse_node(line) for line in self.text.split(";")]
        graph = helper.make_graph(nodes, "case", inputs, [], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        known = onnx.shape_inference.infer_shapes(model, data_prop=True).graph.value_info
        graph.output.extend(info for info in known if info.name == "y")
        return helper.make_model(graph, opset_imports=model.opset_import, ir_version=9), fed


def made(value: str, rng: np.random.Generator) -> np.ndarray:
    """The array that a value of a case stands for."""
    found = _WORD.fullmatch(value)
    if found is None:
        numbers = json.loads(value)
        whole = all(isinstance(each, int) for each in numbers)
        return np.array(numbers, np.int64 if whole else np.float32)
    constant, kind, bound, dims = found.groups()
    shape = tuple(int(dim) for dim in dims.split(",")) if dims else ()
    dtype = np.dtype(TYPES[kind])
    if dtype.kind == "f":
        drawn = rng.normal(size=shape) * (0.05 if constant else 1)
        return np.asarray(drawn).astype(dtype)
    return np.asarray(rng.integers(0, 2 if kind == "bool" else int(bound or 100), shape)).astype(
        dtype
    )


def _read() -> list[Case]:
    text = Path(__file__).with_name("operators.txt").read_text("utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line and line[0] != "#"]
    return [Case(n, t, dict(each.split(": ") for each in v.split("; "))) for n, t, v in rows]


CASES = _read()
