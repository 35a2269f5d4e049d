"""The conformance suite of targets: what a target must do to be called one.

A vendor runs it on a target of their own as we run it on ours::

    for case in CASES:
        conform(my_target, case)

Each case either compiles and agrees with its source, or is refused with a coded error before
any file exists. The same case compiled twice gives the same bytes. ``conform_all`` runs all of
them, holds the target to what it declares to take, and refuses one that takes nothing.
``check_kernel`` does the same for one kernel of C.
"""

from smelt.conformance.cases import CASES, Case
from smelt.conformance.kernel import check_kernel
from smelt.conformance.suite import Outcome, Result, conform, conform_all

__all__ = ["CASES", "Case", "Outcome", "Result", "check_kernel", "conform", "conform_all"]
