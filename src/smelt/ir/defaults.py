"""Initializers that are listed as inputs, too.

From IR version 4 on callers can override such a value, so it is an input with a default, never a
constant. While a model is compiled the defaults are set aside, and no pass can take one for a
constant. Up to version 3 every initializer had to be listed as an input, and ONNX Runtime takes
those for constants and refuses to override one; so they are constants here, and no inputs.
"""

from __future__ import annotations

import warnings

import onnx_ir as ir

META_KEY = "smelt.default"
FIRST_WITH_OVERRIDABLE = 4
"""The IR version from which on initializers that are inputs are defaults."""


def _take_old_initializers_for_constants(model: ir.Model) -> None:
    """Take initializers out of the inputs of a model whose IR version has no defaults."""
    inputs = model.graph.inputs
    kept = [value for value in inputs if not value.is_initializer()]
    if len(kept) < len(inputs):
        weights = dict(model.graph.initializers)
        inputs[:] = kept
        model.graph.initializers.update(weights)
        model.ir_version = FIRST_WITH_OVERRIDABLE


def set_aside_defaults(model: ir.Model) -> None:
    """Take the defaults of inputs out of the graph; ``restore_defaults`` puts them back."""
    if model.ir_version < FIRST_WITH_OVERRIDABLE:
        _take_old_initializers_for_constants(model)
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


def warn_of_defaults(model: ir.Model) -> None:
    """Say that weights which are inputs, too, are no constants: little can be made of them."""
    names = [repr(value.name) for value in model.graph.inputs if default_of(value) is not None]
    if names:
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        warnings.warn(
            f"{len(names)} of {len(model.graph.inputs)} inputs have a default that callers may "
            f"override, so they are no constants: {shown}; the pipeline 'freeze-defaults,default' "
            "takes them for constants",
            stacklevel=4,
        )
