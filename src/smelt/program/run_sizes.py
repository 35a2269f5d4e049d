"""Run-time sizes of a compiled program, with bounds that are known at compile time.

A ``Size`` stands for a number where kernels are planned and emitted. It supports arithmetic, and
its text is a C expression. A comparison that its bounds do not decide raises Undecided, so that no
kernel is correct for some sizes only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import index
from typing import NoReturn, TypeAlias

from smelt.program.monomials import Atoms, Bounds, Monomial, bounds_of, product_bounds, sum_text


class Undecided(Exception):
    """The answer differs between sizes within the bounds."""


@dataclass(frozen=True, slots=True, eq=False)
class Size:
    """A polynomial over ``atoms``, which are C expressions with bounds.

    ``low`` and ``high`` bound its value. Create one by ``Size.named``; a polynomial without atoms
    is a plain int.
    """

    terms: Mapping[Monomial, int]
    atoms: Atoms
    low: int
    high: int

    @staticmethod
    def named(text: str, low: int, high: int) -> Size:
        """Return the size whose C expression is ``text``, from ``low`` >= 0 to ``high``."""
        return Size({(text,): 1}, {text: (low, high)}, low, high)

    # Arithmetic

    def __add__(self, other: Dim) -> Dim:
        if isinstance(other, int):
            sum_ = {**self.terms, (): self.terms.get((), 0) + other}
            return _sum(sum_, self.atoms, (self.low + other, self.high + other), cancels=False)
        right, terms = _polynomial(other), dict(self.terms)
        for monomial, factor in right.terms.items():
            terms[monomial] = terms.get(monomial, 0) + factor
        bounds = (self.low + right.low, self.high + right.high)
        cancels = len(terms) < len(self.terms) + len(right.terms)
        return _sum(terms, {**self.atoms, **right.atoms}, bounds, cancels=cancels)

    def __mul__(self, other: Dim) -> Dim:
        if isinstance(other, int):
            scaled = {monomial: factor * other for monomial, factor in self.terms.items()}
            bounds = product_bounds((self.low, self.high), (other, other))
            return _sum(scaled, self.atoms, bounds, cancels=other == 0)
        right = _polynomial(other)
        terms: dict[Monomial, int] = {}
        for own_monomial, a in self.terms.items():
            for other_monomial, b in right.terms.items():
                product = tuple(sorted((*own_monomial, *other_monomial)))
                terms[product] = terms.get(product, 0) + a * b
        bounds = product_bounds((self.low, self.high), (right.low, right.high))
        cancels = len(terms) < len(self.terms) * len(right.terms)
        return _sum(terms, {**self.atoms, **right.atoms}, bounds, cancels=cancels)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return self + -other

    def __rsub__(self, other: Dim) -> Dim:
        return self * -1 + other

    def __floordiv__(self, other: Dim) -> Dim:
        return _quotient(self, other)

    def __rfloordiv__(self, other: Dim) -> Dim:
        return _quotient(_polynomial(other), self)

    def __mod__(self, other: Dim) -> Dim:
        remainder = self - self // other * other
        if not isinstance(remainder, Size) or lowest(other) <= 0:
            return remainder
        low, high = max(remainder.low, 0), min(remainder.high, highest(other) - 1)
        return Size(remainder.terms, remainder.atoms, low, high)

    def __rmod__(self, other: Dim) -> Dim:
        """Return ``other % self`` as Python does (-1 % n is n - 1); C rounds towards 0."""
        if isinstance(other, int) and other < 0 < self.low:
            if -other < self.low:
                return self + other
            return Size.named(f"(({self} - {-other} % {self}) % {self})", 0, self.high - 1)
        return other - other // self * self

    # Comparisons

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | Size):
            return NotImplemented
        difference = self - other
        if isinstance(difference, int):
            return difference == 0
        if difference.low > 0 or difference.high < 0:
            return False
        raise Undecided(f"whether {with_bounds(self)} is {with_bounds(other)}")

    def __lt__(self, other: Dim) -> bool:
        return _is_below(self, other)

    def __le__(self, other: Dim) -> bool:
        return not _is_below(other, self)

    def __gt__(self, other: Dim) -> bool:
        return _is_below(other, self)

    def __ge__(self, other: Dim) -> bool:
        return not _is_below(self, other)

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __index__(self) -> NoReturn:
        raise Undecided(f"how much {with_bounds(self)} is")

    __int__ = __float__ = __round__ = __index__

    def __truediv__(self, *other: object, **options: object) -> NoReturn:
        """Raise Undecided: a fraction is no size, and NumPy's arrays need the number itself."""
        raise Undecided(f"how much {with_bounds(self)} is")

    __rtruediv__ = __array__ = __divmod__ = __rdivmod__ = __truediv__

    def __str__(self) -> str:
        text = sum_text(self.terms)
        return text if text in self.atoms else f"({text})"

    def __format__(self, spec: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return str(self)


Dim: TypeAlias = int | Size


def highest(size: Dim) -> int:
    """Return the upper bound of ``size``."""
    return size.high if isinstance(size, Size) else size


def lowest(size: Dim) -> int:
    """Return the lower bound of ``size``."""
    return size.low if isinstance(size, Size) else size


def same(a: object, b: object) -> bool:
    """True if ``a`` and ``b``, dims or tuples of dims, are equal in every run."""
    try:
        return a == b
    except Undecided:
        return False


def maybe_one(size: Dim) -> bool:
    """True if ``size`` is a run-time size that may be 1."""
    return isinstance(size, Size) and size.low <= 1 <= size.high


def is_empty(shape: Iterable[Dim]) -> bool:
    """True if a tensor of this shape is empty in every run."""
    return any(highest(size) == 0 for size in shape)


def zero_if_empty(count: Dim, size: Dim) -> Dim:
    """Return ``count``, or 0 in a run in which ``size`` is 0: ``(dim0 > 0 ? dim1 : 0)``."""
    if lowest(size) > 0:
        return count
    return Size.named(f"({size} > 0 ? {count} : 0)", 0, highest(count))


def surely_below(a: Dim, b: Dim) -> bool:
    """True if ``a`` is less than ``b`` in all runs."""
    return highest(a - b) < 0


def ceil_div(size: Dim, by: int) -> Dim:
    """Return ``size`` divided by ``by``, rounded up."""
    return (size + by - 1) // by


def larger(a: Dim, b: Dim) -> Dim:
    """Return the maximum of ``a`` and ``b``, as a C expression if the bounds do not decide."""
    if not surely_below(a, b) and highest(b - a) <= 0:
        return a
    if surely_below(a, b):
        return b
    bounds = (max(lowest(a), lowest(b)), max(highest(a), highest(b)))
    return Size.named(f"({a} > {b} ? {a} : {b})", *bounds)


def smaller(a: Dim, b: Dim) -> Dim:
    """Return the minimum of ``a`` and ``b``, as a C expression if the bounds do not decide."""
    if highest(a - b) <= 0:
        return a
    if highest(b - a) <= 0:
        return b
    bounds = (min(lowest(a), lowest(b)), min(highest(a), highest(b)))
    return Size.named(f"({a} < {b} ? {a} : {b})", *bounds)


def with_bounds(size: object) -> str:
    """Return ``size`` and its bounds as text, for messages."""
    return f"{size} ({size.low} to {size.high})" if isinstance(size, Size) else str(size)


def _polynomial(size: Dim) -> Size:
    """Return ``size`` as a polynomial; raises Undecided if it is not a size."""
    if isinstance(size, Size):
        return size
    try:
        number = index(size)
    except TypeError as error:
        raise Undecided("what only a number is good for") from error
    return Size({(): number}, {}, number, number)


def _sum(terms: dict[Monomial, int], atoms: Atoms, known: Bounds, *, cancels: bool) -> Dim:
    """Return the sum of ``terms``, within ``known``.

    With ``cancels``, terms were combined: some may be 0, and their bounds may be closer.
    """
    if not terms.get((), 1):
        del terms[()]
    if not cancels and atoms:
        return Size(terms, atoms, *known)
    nonzero = {monomial: factor for monomial, factor in terms.items() if factor}
    if not nonzero.keys() - {()}:
        return nonzero.get((), 0)
    used = {atom for monomial in nonzero for atom in monomial}
    low, high = bounds_of(nonzero, atoms)
    used_bounds = {atom: atoms[atom] for atom in sorted(used)}
    return Size(nonzero, used_bounds, max(low, known[0]), min(high, known[1]))


def _is_below(a: Dim, b: Dim) -> bool:
    """True if ``a`` is less than ``b``; raises Undecided if runs differ."""
    difference = a - b
    if highest(difference) < 0:
        return True
    if lowest(difference) >= 0:
        return False
    raise Undecided(f"whether {with_bounds(a)} is below {with_bounds(b)}")


def _quotient(size: Size, by: Dim) -> Dim:
    """Return ``size // by``: a polynomial if every term is divisible, else a C division."""
    if lowest(by) <= 0:
        raise Undecided(f"what divides by {with_bounds(by)}")
    if same(by, 1):
        return size
    if highest(size) <= 0:
        rounded_up = -size + by - 1
        return -(rounded_up // by)
    exact = _exact_quotient(size, by)
    if exact is not None:
        return exact
    if size.low < 0:  # / of C rounds towards 0
        shift = -(size.low // lowest(by))
        return (size + by * shift) // by - shift
    divided = _polynomial(by)
    return Size.named(f"({size} / {by})", size.low // divided.high, size.high // divided.low)


def _exact_quotient(size: Size, by: Dim) -> Dim | None:
    """Return ``size / by`` if ``by`` is one term that divides every term of ``size``, else None."""
    divisor = _polynomial(by)
    if len(divisor.terms) != 1:
        return None
    ((divisor_atoms, divisor_factor),) = divisor.terms.items()
    terms: dict[Monomial, int] = {}
    for monomial, factor in size.terms.items():
        atoms_left = list(monomial)
        for atom in divisor_atoms:
            if atom not in atoms_left:
                return None
            atoms_left.remove(atom)
        if factor % divisor_factor:
            return None
        terms[tuple(atoms_left)] = factor // divisor_factor
    quotients = [a // b for a in (size.low, size.high) for b in (divisor.low, divisor.high)]
    return _sum(terms, size.atoms, (min(quotients), max(quotients)), cancels=True)
