"""Recognize means and variances of groups of channels, as flax writes them with channels last.

``x`` of shape (N, ..., C) is reshaped to (N, ..., G, C/G). Its mean and variance, (N, G), are
repeated C/G times, (N, G, C/G), and reshaped to (N, 1..., C) to broadcast to ``x``.
"""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from smelt.ir.same_shape import same_dim
from smelt.ir.walk import attempt
from smelt.passes.norms.moments import Deviation, MomentReader, broadcasts_against


class GroupedMomentReader(MomentReader):
    """Reads a Deviation of the reshaped x; ``ungrouped`` converts it to one of x."""

    def before_repeats(self, value: ir.Value | None) -> ir.Value | None:
        """Return ``value`` before reshapes and, if there is one, an Expand of a last dim of 1,
        which repeats each element in place.
        """
        value = self.before_reshapes(value)
        node = self.walk.up(value, "Expand")
        if node is None or node.inputs[0] is None:
            return value
        before, after = node.inputs[0].shape, node.outputs[0].shape
        if before is None or after is None or len(before) != len(after) or not len(before):
            return value
        if before[-1] != 1 or not all(map(same_dim, before.dims[:-1], after.dims[:-1])):
            return value
        return self.before_reshapes(node.inputs[0])

    def ungrouped(self, deviation: Deviation) -> Deviation:
        """Return ``deviation`` for the x before the Reshape, with its spatial axes and groups."""
        reshape = self.walk.up(deviation.x, "Reshape")
        assert reshape is not None
        x, shape = reshape.inputs[0], deviation.x.shape
        assert x is not None
        assert shape is not None
        groups = shape[-2]
        assert isinstance(groups, int)
        axes = tuple(range(1, len(shape) - 2))
        return replace(deviation, x=x, axes=axes, groups=groups)

    @attempt
    def broadcasts(self, value: ir.Value | None, deviation: Deviation) -> bool:
        """True if ``value`` has one element for each channel of each sample."""
        if not self._is_grouped(deviation):
            return False
        ungrouped = self.ungrouped(deviation)
        return broadcasts_against(value, ungrouped.x, ungrouped.axes)

    @attempt
    def is_centred(self, value: ir.Value | None, deviation: Deviation) -> bool:
        """True if ``value`` is x minus the means of its groups."""
        node = self.walk.up(value, "Sub")
        if node is None or node.inputs[0] is not self.ungrouped(deviation).x:
            return False
        mean = node.inputs[1]
        is_broadcast = self.broadcasts(mean, deviation)
        return is_broadcast and self.mean(self.before_repeats(mean)) == (
            deviation.x,
            deviation.axes,
        )

    def _is_grouped(self, deviation: Deviation) -> bool:
        """True if x was reshaped from (N, ..., C) to (N, ..., G, C/G) and is reduced over all but N
        and G."""
        reshape, inner = self.walk.up(deviation.x, "Reshape"), deviation.x.shape
        outer = reshape.inputs[0].shape if reshape is not None and reshape.inputs[0] else None
        if inner is None or outer is None or len(inner) != len(outer) + 1 or len(outer) < 3:
            return False
        groups, size, channels = inner[-2], inner[-1], outer[-1]
        if not (isinstance(groups, int) and isinstance(size, int)) or groups * size != channels:
            return False
        rank = len(inner)
        reduced = deviation.axes == (*range(1, rank - 2), rank - 1)
        return reduced and all(map(same_dim, inner.dims[:-2], outer.dims[:-1]))
