"""Run one model, or one part of a model, at any sizes of its inputs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported
from smelt.ir.partition import is_constant_node
from smelt.ir.shapes.inference import ShapeInference
from smelt.targets.host.any_sizes.chain import Chain
from smelt.targets.host.any_sizes.decided import decided_nodes, is_known
from smelt.targets.host.any_sizes.plan_cache import PlanCache
from smelt.targets.host.any_sizes.planning import (
    Computes,
    Plan,
    Runner,
    bound,
    prepare,
    with_own_dims,
)
from smelt.targets.host.kernels.kernel import Array


@dataclass(frozen=True)
class Planner:
    """Makes runners of models; it holds the lock ``planning`` while it makes one."""

    plan: Plan
    computes: Computes
    planning: threading.RLock = field(default_factory=threading.RLock)

    def runner_of_part(self, model: ir.Model) -> Runner:
        """Return a runner of a part of a model, or of a body, whose sizes may be unknown."""
        return AnySizes(with_own_dims(model), self)

    def runner_of_call(self, model: ir.Model, node: str = "") -> Runner:
        """Return a runner of ``model``, whose input sizes are those of one call.

        ``node`` is the type of its only operator, if it was cut out as a data-dependent node. With
        known sizes, passes of the target may replace operators that have no lowering.
        """
        try:
            return self.plan(model, True)
        except (Unsupported, ErrorList):
            prepare(model, self.computes)
        return AnySizes(model, self, node)


class AnySizes:
    """Runs a model as one Program, as a chain of parts, or as a Program for the sizes of each call.

    A model that consists of the operator ``node`` alone was cut out before, and is not cut again.
    Raises Unsupported, or an ErrorList, if there is no Program although all sizes are known.
    """

    def __init__(self, model: ir.Model, planner: Planner, node: str = "") -> None:
        """Plan ``model`` as one Program, or cut it at its data-dependent nodes."""
        self._planner = planner
        self._model = model.clone()
        self._run: Runner | None = None
        self._plans = PlanCache(planner.planning)
        self._known = all(map(is_known, model.graph.inputs))
        try:
            self._run = planner.plan(model, self._known)
        except (Unsupported, ErrorList) as error:
            self._cut(error, node)

    def _cut(self, error: Exception, node: str) -> None:
        """Cut the model at its data-dependent nodes, into a chain of parts.

        If it has none, each call plans the model for its sizes. Raises ``error`` if the sizes are
        known already, because then no call could plan it.
        """
        if any(value.shape is None for value in self._model.graph.inputs):
            return  # ranks are known in a call
        model = self._model.clone()
        ShapeInference(model).infer_model()
        decided = decided_nodes(model)
        nodes = [each for each in model.graph if not is_constant_node(each)]
        if decided and not (len(nodes) == 1 and nodes[0].op_type == node):
            self._run = Chain(model, decided, self._planner)
        elif self._known:
            raise error

    def __call__(self, *arrays: Array) -> Sequence[Array]:
        """Run once. Raises UsageError E670 for sizes that do not fit, InvalidModel E321."""
        if self._run is not None:
            return self._run(*arrays)
        shapes = tuple(array.shape for array in arrays)
        run = self._plans.of(
            shapes, lambda: self._planner.runner_of_call(bound(self._model, arrays))
        )
        return run(*arrays)

    @property
    def parts(self) -> int:
        """The number of parts that run one after another."""
        return self._run.parts if isinstance(self._run, Chain) else 1
