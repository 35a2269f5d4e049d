"""What inference has found out about values, and the one place where it is taken back.

Of a value, inference notes its shape, the integers that it holds (in a context and in the metadata)
and, where all of those are numbers, a ``const_value`` as if the value were a constant.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir
from onnx_shape_inference import SYM_DATA_KEY, ShapeInferenceContext

from smelt.ir.invented_dims import is_invented


def forget(context: ShapeInferenceContext, value: ir.Value) -> None:
    """Take back what was inferred of the shape and the elements of ``value``."""
    value.shape = None
    forget_elements(context, value)


def forget_elements(context: ShapeInferenceContext, value: ir.Value) -> None:
    """Take back which integers ``value`` was inferred to hold."""
    context._symbolic_values.pop(value, None)
    forget_noted_elements(value)


def forget_noted_elements(value: ir.Value) -> None:
    """Take back what ``value`` itself says of its elements, for whichever context reads it next."""
    value.metadata_props.pop(SYM_DATA_KEY, None)
    if value.const_value is not None and is_computed(value):
        value.const_value = None


def is_computed(value: ir.Value) -> bool:
    """True for the result of a node other than Constant: inference alone gave it a tensor."""
    node = value.producer()
    return node is not None and node.op_type != "Constant"


class KnownFacts:
    """The facts about values at one time, to go back to.

    Loops are inferred under an assumption: each state keeps the sizes that it starts with. Where
    this turns out to be wrong, every fact found since has to go: in the body, in what the loop
    returns, and in all that reads this.
    """

    def __init__(self, values: Iterable[ir.Value]) -> None:
        self._kept = [
            (value, value.shape, value.const_value, value.metadata_props.get(SYM_DATA_KEY))
            for value in values
        ]

    def restore(self) -> None:
        """Give each value the facts that it had then.

        Elements are left out that have names which inference made up: another inference counts such
        names anew, so ``_d0`` of before and of after would be taken for one size.
        """
        for value, shape, tensor, elements in self._kept:
            value.shape = shape
            forget_noted_elements(value)
            if elements is not None and not is_invented(elements):
                value.metadata_props[SYM_DATA_KEY] = elements
                if is_computed(value):
                    value.const_value = tensor
