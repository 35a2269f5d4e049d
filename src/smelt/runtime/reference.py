"""Run a model in the reference evaluator of the onnx package: slow, complete, in NumPy."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel, SmeltError, Unsupported
from smelt.runtime.feed import feed
from smelt.runtime.interface import Interface, Value, interface_of
from smelt.runtime.reference_operators import reference_operators
from smelt.runtime.serialize import serialize


class Reference:
    """A reference evaluator; see ``runner.Runner``."""

    name = "reference"

    def __init__(self, model: ir.Model, *, consume: bool = False) -> None:
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

    def __call__(self, *inputs: Value) -> tuple[Value, ...]:
        """Run once. Raises InvalidModel E321 if the run fails."""
        fed = feed(self.interface, inputs)
        try:
            with np.errstate(all="ignore"):
                return tuple(map(_as_array, self._evaluator.run(None, fed)))
        except (SmeltError, MemoryError):
            raise
        except Exception as error:
            raise _run_error(error) from error


def _as_array(result: Value) -> Value:
    return np.asarray(result) if isinstance(result, np.generic) else result


def _load_error(error: Exception) -> SmeltError:
    if isinstance(error, NotImplementedError | FileNotFoundError | KeyError):
        return Unsupported("E220", "no runner has a kernel for an operator", why=str(error))
    return InvalidModel("E320", "the reference evaluator refuses the model", why=str(error))


def _run_error(error: Exception) -> SmeltError:
    if isinstance(error, NotImplementedError):
        return Unsupported("E220", "no runner has a kernel for an operator", why=str(error))
    return InvalidModel("E321", "the model fails as it runs", why=str(error))
