"""Run models with sizes that are unknown before a run; parts are planned when sizes are known.

``AnySizes`` runs a model. If all sizes follow from the input sizes, it is one Program. Otherwise it
is cut (``chain``): nodes whose sizes follow from their operands' sizes are planned together, and
each data-dependent node (``decided``) runs by itself. Such a node computes its result size
(``data_dependent``), or becomes static once the values that decide it are known
(``node.NodeFixedByValues``), or runs bodies (``control_flow``), which are again models of any
sizes. A part without a plan for open sizes is planned for the sizes of each call; plans are cached.
"""

from __future__ import annotations

from smelt.targets.host.any_sizes.runner import AnySizesRunner

__all__ = ["AnySizesRunner"]
