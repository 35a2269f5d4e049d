"""DotGeneral over semirings other than sum and product, in C.

A maximum that propagates NaN takes twice as long as one that does not. So the operands are scanned
first: without NaN, and without infinities that a sum could turn into NaN, the plain comparison
gives the same result.
"""

from __future__ import annotations

from smelt.native.emit.writer import Writer
from smelt.native.kernels.elementwise import combine
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.portable_micro_kernel import Algebra
from smelt.native.types import C_TYPES, CType
from smelt.operators.semiring import SEMIRINGS, Semiring, semiring_of

PLAIN = {"Max": "{t} > {c} ? {t} : {c}", "Min": "{t} < {c} ? {t} : {c}"}
"""Max and Min that are correct for numbers and drop NaN."""

BITS = {"And": "&", "Or": "|"}
"""Branch-free operators on booleans, which are 0 or 1."""

SUM_PRODUCT = SEMIRINGS["sum_product"]


def semiring_in(instance: Instance) -> Semiring:
    """Return the semiring of a DotGeneral."""
    return semiring_of(instance.instruction.attributes.get("semiring", "sum_product"))


def is_sum_product(instance: Instance) -> bool:
    """True for sums of products of numbers, False for other semirings such as maxima of sums."""
    return semiring_in(instance) == SUM_PRODUCT


def refusal(instance: Instance) -> str | None:
    """Return why the semiring is undefined on the instance's elements, None if it is defined."""
    semiring, kind = semiring_in(instance), result_type(instance).kind
    if semiring.is_of_booleans != (kind == "bool"):
        return f"the semiring {semiring} of {kind}s"
    if semiring.plus == "LogAddExp" and kind != "float":
        return "logarithms of integers"
    return None


def result_type(instance: Instance) -> CType:
    """Return the element type of the result."""
    return C_TYPES[instance.program.slots[instance.instruction.outputs[0]].dtype]


def nan_propagating(semiring: Semiring, type_: CType) -> Algebra:
    """Return the semiring as C whose sum and product propagate NaN as NumPy does."""
    name = f"{semiring.plus}_{semiring.times}".lower()
    start = _start(semiring, type_)
    if type_.kind == "bool":
        return Algebra(
            name, start, f"{{a}} {BITS[semiring.times]} {{v}}", f"{{c}} {BITS[semiring.plus]} {{t}}"
        )
    product = combine(semiring.times, type_, "{a}", "{v}")
    return Algebra(name, start, product, combine(semiring.plus, type_, "{t}", "{c}"))


def nan_free(semiring: Semiring, type_: CType) -> Algebra | None:
    """Return faster C for operands that meet ``no_nan_condition``, None if there is none."""
    if type_.kind != "float" or semiring.plus not in PLAIN:
        return None
    step = PLAIN[semiring.plus]
    times = PLAIN.get(semiring.times, "").format(t="{a}", c="{v}")
    product = times or combine(semiring.times, type_, "{a}", "{v}")
    name = f"plain_{semiring.plus}_{semiring.times}".lower()
    return Algebra(name, _start(semiring, type_), product, step)


def _start(semiring: Semiring, type_: CType) -> str:
    """Return the identity of the semiring's sum, as C: the lowest number for Max, "1" for And."""
    return {"Max": type_.lowest(), "Min": type_.highest(), "And": "1"}.get(semiring.plus, "0")


def no_nan_condition(cx: KernelContext, semiring: Semiring) -> str:
    """Return a C condition: no product or sum of the operands can be NaN.

    A sum of two numbers is NaN only if it adds +inf and -inf: maxima exclude +inf, minima -inf.
    Products of ``Max`` and ``Min`` need numbers only, all others finite numbers.

    ```
    all_finite_float(x0, 12) && all_finite_float(x1, 12)
    ```
    """
    type_ = cx.type(0)
    tests = {
        ("Max", "Add"): ("below", "x[i] < INFINITY"),
        ("Min", "Add"): ("above", "x[i] > -INFINITY"),
    }
    numbers = ("number", "x[i] == x[i]")
    finite = ("finite", "x[i] - x[i] == 0")
    by_times = {"Max": numbers, "Min": numbers}
    name, test = tests.get((semiring.plus, semiring.times), by_times.get(semiring.times, finite))
    out = Writer()
    function = f"all_{name}_{type_.name}"
    out.line(f"static int {function}(const {type_.name} *restrict x, ptrdiff_t n)")
    with out.block(""):
        out.line("int wrong = 0;")
        with out.loop("i", "n"):
            out.line(f"wrong |= !({test});")
        out.line("return !wrong;")
    cx.call(function, out.text())
    return " && ".join(f"{function}({x.name}, {x.size})" for x in (cx.input(0), cx.input(1)))
