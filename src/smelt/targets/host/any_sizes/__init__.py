"""Run models whose sizes depend on data; each part is planned once a run knows its sizes.

``model.AnySizes`` runs a model. If all sizes follow from the input sizes, the model is one Program.
Otherwise ``chain`` cuts the model at its data-dependent nodes, which ``decided`` finds. The nodes
between two of them are planned together. A data-dependent node runs by itself, in one of three
ways:

- It computes its result sizes, such as NonZero (``data_dependent``).
- It becomes static once some operands are constants, such as the shape of a Reshape
  (``node.NodeFixedByValues``).
- It runs bodies, which are again models of any sizes (``control_flow``).

A part without a Program for open sizes is planned for the sizes of each call; plans are cached.
"""

from __future__ import annotations

from smelt.targets.host.any_sizes.runner import AnySizesRunner

__all__ = ["AnySizesRunner"]
