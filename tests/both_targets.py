"""Graphs that C and the host target must compute alike, as ONNX Runtime or ONNX's reference does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir
from c_library import Library, assert_same
from onnx.reference import ReferenceEvaluator

from smelt.ir import text
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.targets.base import Plan
from smelt.targets.host import host

Arrays = Sequence[np.ndarray]


def on_host(model: ir.Model, inputs: Arrays) -> tuple[np.ndarray, ...]:
    """The results of the phases of the host target alone."""
    plan = Plan(model)
    host.schedule(plan)
    host.allocate(plan)
    return host.emit(plan)(*inputs)


def by_reference(model: ir.Model, inputs: Arrays) -> Arrays:
    """The results of ONNX's own reference implementation, where ONNX Runtime departs from it."""
    names = [value.name for value in model.graph.inputs]
    return ReferenceEvaluator(ir.to_proto(model)).run(None, dict(zip(names, inputs, strict=True)))


def by_runtime(model: ir.Model, inputs: Arrays) -> Arrays:
    """The results of ONNX Runtime."""
    return OnnxRuntime(model)(*inputs)


class BothTargets(Library):
    """One C library of all graphs; each graph is compiled for the host when it is checked."""

    def check_both(
        self,
        name: str,
        inputs: list[np.ndarray],
        expect: Callable[[ir.Model, Arrays], Arrays] = by_runtime,
        rtol: float = 1e-5,
        atol: float = 1e-5,
    ) -> None:
        """C and the host give what ``expect`` gives."""
        source = self.models[name].source
        expected = [np.asarray(array) for array in expect(source, inputs)]
        copy = text.parse(self.graphs[name], self.opset)
        for results in (self.run(name, inputs), on_host(copy, inputs)):
            for got, want in zip(results, expected, strict=True):
                assert_same(got, want, rtol, atol)
