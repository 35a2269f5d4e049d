"""Run a model in the reference evaluator of the onnx package: slow, complete, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel, SmeltError, Unsupported
from smelt.runtime.feed import feed
from smelt.runtime.interface import Interface, Value, interface_of
from smelt.runtime.reference_operators import reference_operators
from smelt.runtime.serialize import serialize

if TYPE_CHECKING:
    from onnx.reference import ReferenceEvaluator

NO_KERNEL = "neither ONNX Runtime nor the reference evaluator has a kernel for an operator"

WITHOUT_RUNNING = "install a newer onnxruntime, or skip the comparison: --verify off"


class Reference:
    """A reference evaluator; see ``runner.Runner``."""

    name = "reference"

    def __init__(self, model: ir.Model, *, consume: bool = False) -> None:
        """Open the evaluator; raises what ``_load_error`` returns."""
        from onnx.reference import ReferenceEvaluator

        self.interface: Interface = interface_of(model)
        operators = reference_operators(model)
        proto = serialize(model, consume=consume).proto
        try:
            self._evaluator = ReferenceEvaluator(proto, new_ops=operators)
        except (SmeltError, MemoryError):
            raise
        except Exception as error:
            raise _load_error(error) from error
        _return_copies(self._evaluator)

    def __call__(self, *inputs: Value) -> tuple[Value, ...]:
        """Run once. Raises InvalidModel E321 if the run fails."""
        values_by_name = feed(self.interface, inputs)
        try:
            with np.errstate(all="ignore"):
                return tuple(map(_as_array, self._evaluator.run(None, values_by_name)))
        except (SmeltError, MemoryError):
            raise
        except Exception as error:
            raise _run_error(error) from error


def _return_copies(evaluator: ReferenceEvaluator) -> None:
    """Make every node of ``evaluator`` return contiguous arrays.

    NumPy sums a transposed view in another order than its copy. With views, inserting a node that
    only copies would change later results, in the last bits.
    """
    for node in evaluator.rt_nodes_:
        node.run = _in_one_piece(node.run)


def _in_one_piece(run: Callable[..., Sequence[object]]) -> Callable[..., tuple[object, ...]]:
    """Return ``run`` with results copied to contiguous arrays."""

    def run_and_copy(*args: object, **kwargs: object) -> tuple[object, ...]:
        """Return the results of ``run`` as contiguous arrays."""
        results = run(*args, **kwargs)
        return tuple(np.asarray(r, order="C") if isinstance(r, np.ndarray) else r for r in results)

    return run_and_copy


def _as_array(result: Value) -> Value:
    """Return a NumPy scalar as an array, other values unchanged."""
    return np.asarray(result) if isinstance(result, np.generic) else result


def _load_error(error: Exception) -> SmeltError:
    """Return the smelt error for an exception of the reference evaluator that loads a model."""
    if isinstance(error, NotImplementedError | FileNotFoundError | KeyError):
        return Unsupported("E220", NO_KERNEL, why=str(error), fix=WITHOUT_RUNNING)
    return InvalidModel(
        "E320",
        "the reference evaluator refuses the model",
        why=str(error),
        fix="install onnxruntime, which runs more operators",
    )


def _run_error(error: Exception) -> SmeltError:
    """Return the smelt error for an exception of the reference evaluator that runs a model."""
    if isinstance(error, NotImplementedError):
        return Unsupported("E220", NO_KERNEL, why=str(error), fix=WITHOUT_RUNNING)
    return InvalidModel(
        "E321",
        "the model fails while it runs",
        why=str(error),
        fix="check that the inputs fit the model, above all inputs with sizes or indices",
    )
