"""The conformance suite of targets: what a target must do to be called one.

A vendor runs it on a target of their own as we run it on ours::

    for case in CASES:
        conform(my_target, case)

Each case either compiles and agrees with its source, or is refused with a coded error before
any file exists. The same case compiled twice gives the same bytes. ``conform_all`` runs all of
them, tells what of each the target ran itself, holds it to what it declares to take, and refuses
one that takes nothing, or that declares what no case ran on it.
``check_kernel`` does the same for one kernel of C.
"""

from smelt.conformance.cases import CASES, Case
from smelt.conformance.kernel import check_kernel
from smelt.conformance.result import Conformance, Outcome, Result
from smelt.conformance.suite import conform, conform_all

__all__ = [
    "CASES",
    "Case",
    "Conformance",
    "Outcome",
    "Result",
    "check_kernel",
    "conform",
    "conform_all",
]
