"""Initializers that are inputs too.

From IR version 4 on callers can override such a value, so it is an input with a default, never a
constant. During a compile the defaults are set aside, so no pass takes one for a constant. Up to
version 3 every initializer had to be listed as an input; ONNX Runtime treats those as constants and
refuses to override them, so here they are constants and no inputs.
"""

from __future__ import annotations

import warnings

import onnx_ir as ir

META_KEY = "smelt.default"
FIRST_WITH_OVERRIDABLE = 4
"""The first IR version in which an initializer that is an input is a default."""


def _take_old_initializers_for_constants(model: ir.Model) -> None:
    """Remove initializers from the inputs of a model whose IR version has no defaults."""
    inputs = model.graph.inputs
    inputs_only = [value for value in inputs if not value.is_initializer()]
    if len(inputs_only) < len(inputs):
        weights = dict(model.graph.initializers)
        inputs[:] = inputs_only
        model.graph.initializers.update(weights)
        model.ir_version = FIRST_WITH_OVERRIDABLE


def set_aside_defaults(model: ir.Model) -> None:
    """Move the defaults of inputs out of the graph; ``restore_defaults`` puts them back."""
    if model.ir_version < FIRST_WITH_OVERRIDABLE:
        _take_old_initializers_for_constants(model)
    graph = model.graph
    for value in graph.inputs:
        if value.is_initializer() and value.name is not None:
            value.meta[META_KEY] = value.const_value
            del graph.initializers[value.name]
            value.const_value = None


def restore_defaults(model: ir.Model) -> None:
    """Put the defaults that ``set_aside_defaults`` removed back into the graph."""
    for value in model.graph.inputs:
        default = value.meta.pop(META_KEY, None)
        if default is not None:
            value.const_value = default
            model.graph.register_initializer(value)


def default_of(value: ir.Value) -> ir.TensorProtocol | None:
    """Return the default of an input, set aside or not; None if callers must pass the input."""
    aside = value.meta.get(META_KEY)
    if aside is not None:
        tensor: ir.TensorProtocol = aside
        return tensor
    return value.const_value if value.is_initializer() else None


def replace_default(value: ir.Value, default: ir.TensorProtocol) -> None:
    """Give an input another default; ``value`` has one, which was set aside."""
    assert META_KEY in value.meta
    value.meta[META_KEY] = default


def warn_of_defaults(model: ir.Model) -> None:
    """Warn that weights which are also inputs are not treated as constants."""
    names = [repr(value.name) for value in model.graph.inputs if default_of(value) is not None]
    if names:
        listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        warnings.warn(
            f"{len(names)} of {len(model.graph.inputs)} inputs have a default that callers may "
            f"override, so smelt does not treat them as constants: {listed}; the pipeline "
            "'freeze-defaults,default' makes them constants",
            stacklevel=4,
        )
