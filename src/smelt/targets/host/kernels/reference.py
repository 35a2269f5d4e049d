"""The kernel of a declared operator that has none of its own: its NumPy reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from smelt import operators
from smelt.errors import UsageError
from smelt.operators.declare import Attributes, Operator
from smelt.targets.host.kernels.kernel import Array, Call, Step


def by_reference(operator: Operator) -> Callable[[Call], Step]:
    """The kernel of a declared operator that has none of its own: its NumPy reference."""

    def prepare(call: Call) -> Step:
        attributes: Attributes = {
            attribute.name: call.attributes[attribute.name]  # type: ignore[misc]
            for attribute in operator.attributes
        }
        given = len(call.inputs)

        def run(*arrays: Array | None) -> None:
            try:
                results = operator.reference(arrays[:given], attributes)
            except (ValueError, ArithmeticError) as error:
                raise UsageError(
                    "E670",
                    f"{operator.domain}.{operator.name} cannot be computed for these operands",
                    why=str(error),
                    fix="give operands of a form that its reference covers",
                ) from error
            # A node may leave out the last results of its operator, and others that are optional.
            for target, result in zip(arrays[given:], results, strict=False):
                if target is not None:
                    np.copyto(target, result)

        return Step(run)

    return prepare


def declared(op: str) -> Callable[[Call], Step] | None:
    """The kernel of ``domain::name`` by its reference, None if there is no such operator."""
    domain, _, name = op.partition("::")
    operator = operators.find(domain, name) if name else None
    return None if operator is None else by_reference(operator)
