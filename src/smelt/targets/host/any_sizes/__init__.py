"""Models with sizes that no plan before a run can know: they are planned as a run finds them.

``AnySizes`` runs a model. As long as sizes follow from those of its inputs, it is one Program, as
ever. Else it is cut (``chain``): what follows from sizes of its operands is planned together, and
each node of which data decide the sizes (``decided``) runs by itself. Such a node finds its results
(``found``), or becomes one of known sizes once the values that decide them are there (``told``),
or runs bodies (``control_flow``), which are models of any sizes again. What has no plan for open
sizes is planned for those of each call, and the plans are kept.
"""

from __future__ import annotations

from smelt.targets.host.any_sizes.runner import AnySizesRunner

__all__ = ["AnySizesRunner"]
