"""Facts that inference noted about values, and the one place that erases them.

Inference notes the shape of a value, its integer elements (in a context and in the metadata) and,
if all elements are numbers, a ``const_value`` as if the value were a constant.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir
from onnx_shape_inference import SYM_DATA_KEY, ShapeInferenceContext

from smelt.ir.shapes.shape_context import forget_symbolic_value
from smelt.ir.symbolic_dims.invented_dims import is_invented


def forget(context: ShapeInferenceContext, value: ir.Value) -> None:
    """Erase the inferred shape and the inferred elements of ``value``."""
    value.shape = None
    forget_elements(context, value)


def forget_elements(context: ShapeInferenceContext, value: ir.Value) -> None:
    """Erase the inferred integer elements of ``value``, in ``context`` and in its metadata."""
    forget_symbolic_value(context, value)
    forget_noted_elements(value)


def forget_noted_elements(value: ir.Value) -> None:
    """Erase the inferred elements from the metadata of ``value``, so that no later context reads
    them."""
    value.metadata_props.pop(SYM_DATA_KEY, None)
    if value.const_value is not None and is_computed(value):
        value.const_value = None


def is_computed(value: ir.Value) -> bool:
    """True for the result of a node other than Constant: only inference can have set its tensor."""
    node = value.producer()
    return node is not None and node.op_type != "Constant"


class KnownFacts:
    """A snapshot of the facts about values.

    Loops are inferred under the assumption that each state keeps its initial sizes. If that proves
    wrong, the facts that were inferred since may be wrong, too, in the body of the loop and in all
    values that depend on it. ``restore`` returns to the snapshot.
    """

    def __init__(self, values: Iterable[ir.Value]) -> None:
        """Keep shape, constant and tracked elements of ``values``, to restore them later."""
        self._kept = [
            (value, value.shape, value.const_value, value.metadata_props.get(SYM_DATA_KEY))
            for value in values
        ]

    def restore(self) -> None:
        """Give each value the facts of the snapshot.

        Elements with invented names are dropped: another inference numbers such names anew, so the
        old and the new ``_d0`` would be taken for one size.
        """
        for value, shape, tensor, elements in self._kept:
            value.shape = shape
            forget_noted_elements(value)
            if elements is not None and not is_invented(elements):
                value.metadata_props[SYM_DATA_KEY] = elements
                if is_computed(value):
                    value.const_value = tensor
