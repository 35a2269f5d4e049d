"""Functions of math.h on vectors, by the GNU C library's libmvec.

A compiler calls them in loops if their declaration says that there are such, as that of the library
does with -ffast-math only. They are within 4 units in the last place, and keep NaN, infinities and
the sign of 0, without it: measured on a Zen 4 at up to a million arguments each, at most 3.3 for
doubles and 3.8 for floats.
"""

from __future__ import annotations

DOUBLES = (
    *("exp", "log", "tanh", "erf", "sin", "cos"),
    *("log1p", "expm1", "sinh", "cosh", "atan"),
)
FLOATS = ("logf", "sinf", "cosf", "log1pf", "expm1f")

_DECLARED = "".join(
    f'extern {type_} {name}({type_}) __attribute__((simd("notinbranch")));\n'
    for type_, names in (("double", DOUBLES), ("float", FLOATS))
    for name in names
)

VECTOR_MATH = f"""#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 35)
#define VECTOR_SINES
{_DECLARED}#endif
#endif
"""
"""Declarations after those of math.h. The library has all of these from version 2.35 on."""
