"""The conformance suite: everything that a target must do.

Authors of a target run it as smelt does::

    for case in CASES:
        conform(my_target, case)

Each case either compiles and agrees with its source, or is refused with a coded error before any
file exists. Two compiles of a case give equal bytes. ``conform_all`` runs all cases and reports
which nodes the target itself ran. It fails a target that accepts no case, refuses an operator that
it declares, or declares an operator that no case ran. ``check_kernel`` tests one C kernel.
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
