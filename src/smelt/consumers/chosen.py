"""``Chosen``: the common limits of several consumers, and the pipeline that keeps to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import onnx_ir as ir

from smelt.consumers.consumer import Consumer
from smelt.consumers.obstacle import obstacle
from smelt.ir.opset import domains, opset_of
from smelt.passes import pipeline as language
from smelt.passes.pipeline import Steps

_REPLACE = "bools-to-floats,decompose-operators,inline-operator-bodies"
"""Passes that replace operators which a consumer does not support."""
_CLEAN_UP = (
    "sink-expand,const-deduplication,remove-redundant-ops,const-elimination,"
    "merge-consecutive-transposes,merge-consecutive-reshapes,cast-optimization,noop-elimination,"
    "dead-code-elimination"
)
"""Passes that simplify what the replacements left."""


@dataclass(frozen=True)
class Chosen:
    """The ``consumers`` that must all support one written file.

    ``opset``, if given, is a further upper bound of its opset.
    """

    consumers: tuple[Consumer, ...]
    opset: int | None = None

    def __bool__(self) -> bool:
        return bool(self.consumers)

    def __str__(self) -> str:
        return ", ".join(consumer.name for consumer in self.consumers)

    @cached_property
    def highest_opset(self) -> int:
        """The highest opset that all consumers read, at most ``opset``."""
        return min([consumer.opsets[1] for consumer in self.consumers] + [self.opset or 10**6])

    def versions(
        self, model: ir.Model, opset: int | None, ir_version: int | None
    ) -> tuple[int | None, int | None]:
        """Return the opset and the IR version to write.

        They are those that the user requests; without a request, the highest that all consumers
        read if the model's are higher, else None, which keeps the model's.
        """
        if opset is None and model.opset_imports.get("", 0) > self.highest_opset:
            opset = self.highest_opset
        highest = min(
            (consumer.ir_version for consumer in self.consumers if consumer.ir_version),
            default=None,
        )
        if ir_version is None and highest is not None and model.ir_version > highest:
            ir_version = highest
        return opset, ir_version

    @cached_property
    def kernels(self) -> frozenset[str]:
        """The ONNX operators that all consumers support in some form; passes create no others."""
        kernels = frozenset(name for name, owners in domains().items() if "" in owners)
        for consumer in self.consumers:
            supported = (
                kernels if consumer.operators is None else kernels & consumer.operators.keys()
            )
            kernels = supported - consumer.refused.keys()
        return kernels

    def accepted_of(self, kernels: frozenset[str] | None) -> frozenset[str] | None:
        """Return the operators of ``kernels`` (None: all) that all consumers support in some form.

        None if no consumer limits the operators and ``kernels`` is None.
        """
        if all(consumer.operators is None and not consumer.refused for consumer in self.consumers):
            return kernels
        return self.kernels if kernels is None else self.kernels & kernels

    def takes(self, model: ir.Model, node: ir.Node) -> bool:
        """True if each consumer supports ``node``, whatever its sizes.

        Else passes try to replace the node.
        """
        opset = opset_of(model)
        return all(
            not obstacle(consumer, node, opset, of_sizes=False, deep=False)
            for consumer in self.consumers
        )

    def steps(self, steps: Steps) -> Steps:
        """Return ``steps`` without passes whose results a consumer handles badly, then steps that
        replace unsupported operators."""
        avoided = {name for consumer in self.consumers for name in consumer.without}
        return (
            *language.without_steps(steps, avoided),
            *language.parse(",".join(self._fitting_steps())),
        )

    def _fitting_steps(self) -> Iterator[str]:
        """Yield steps, as pipeline text, that replace unsupported operators and make the forms that
        consumers prefer."""
        if any(consumer.is_onnx_runtime for consumer in self.consumers):
            yield "replace-runtime-gaps{functions=true source=true}"
        attention = () if "Attention" in self.kernels else ("expand-attention",)
        preferred = dict.fromkeys(
            consumer.prefers for consumer in self.consumers if consumer.prefers
        )
        passes = ",".join([*attention, *preferred, _REPLACE, _CLEAN_UP])
        yield f"fixpoint({passes}){{max=64}}"
        if any(consumer.narrow_integers for consumer in self.consumers):
            yield f"fixpoint(narrow-integers,{_CLEAN_UP}){{max=64}}"
        yield "dedup-op-and-var-names"
