"""The kernel of a declared operator that has no kernel of its own: its NumPy reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from smelt import operators
from smelt.errors import UsageError
from smelt.operators.declare import Attributes, Operator
from smelt.targets.host.kernels.kernel import Array, Call, Step


def by_reference(operator: Operator) -> Callable[[Call], Step]:
    """Return a kernel that calls the NumPy reference of ``operator``."""

    def prepare(call: Call) -> Step:
        """Return the step that runs the reference with the attributes of ``call``."""
        attributes: Attributes = {
            attribute.name: call.attributes[attribute.name]  # type: ignore[misc]
            for attribute in operator.attributes
        }
        count = len(call.inputs)

        def run(*arrays: Array | None) -> None:
            """Run the reference; its ValueError or ArithmeticError becomes UsageError E670."""
            try:
                results = operator.reference(arrays[:count], attributes)
            except (ValueError, ArithmeticError) as error:
                raise UsageError(
                    "E670",
                    f"{operator.domain}.{operator.name} cannot be computed for these operands",
                    why=str(error),
                    fix="give operands of types and shapes that its reference supports",
                ) from error
            # A node may omit the operator's last results, and optional ones.
            for target, result in zip(arrays[count:], results, strict=False):
                if target is not None:
                    np.copyto(target, result)

        return Step(run)

    return prepare


def declared(op: str) -> Callable[[Call], Step] | None:
    """Return the reference kernel of ``domain::name``; None if no such operator is declared."""
    domain, _, name = op.partition("::")
    operator = operators.find(domain, name) if name else None
    return None if operator is None else by_reference(operator)
