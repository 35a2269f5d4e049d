"""Overridable initializers.

Up to IR version 3 every initializer is listed as an input too, and later models may still do so:
callers can override such a value, so it is an input with a default, never a constant. While a
model is compiled the defaults are set aside, and no pass can take one for a constant.
"""

from __future__ import annotations

import onnx_ir as ir

META_KEY = "smelt.default"


def set_aside_defaults(model: ir.Model) -> None:
    """Take the defaults of inputs out of the graph; ``restore_defaults`` puts them back."""
    graph = model.graph
    for value in graph.inputs:
        if value.is_initializer() and value.name is not None:
            value.meta[META_KEY] = value.const_value
            del graph.initializers[value.name]
            value.const_value = None


def restore_defaults(model: ir.Model) -> None:
    """Give inputs their defaults back."""
    for value in model.graph.inputs:
        default = value.meta.pop(META_KEY, None)
        if default is not None:
            value.const_value = default
            model.graph.register_initializer(value)


def default_of(value: ir.Value) -> ir.TensorProtocol | None:
    """The default of an input, set aside or not; None if callers must give it."""
    aside = value.meta.get(META_KEY)
    if aside is not None:
        tensor: ir.TensorProtocol = aside
        return tensor
    return value.const_value if value.is_initializer() else None
