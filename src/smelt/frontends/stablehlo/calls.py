"""Custom calls of JAX's own libraries, and composites, which name what their body computes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from smelt.frontends.stablehlo import jax_names
from smelt.frontends.stablehlo.elementwise import CHLO
from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.reductions import window
from smelt.frontends.stablehlo.registry import reads
from smelt.frontends.stablehlo.sizes import as_array

_LAPACK = re.compile(r"lapack_[sdcz](\w+?)(_ffi)?")
CONFIG = "mhlo.backend_config"

Solver = Callable[[Operation, Any], list[Any]]


def _letter(op: Operation, name: str) -> str:
    """A parameter of LAPACK, which is the code of a letter."""
    return chr(op.entry(CONFIG, name, ord("?")))


def _done(x: Any) -> Any:
    """What LAPACK says that went well; where JAX cannot compute, its lowering gives NaN itself."""
    return jnp.zeros(x.shape[:-2], jnp.int32)


def _potrf(op: Operation, given: Any) -> list[Any]:
    if _letter(op, "uplo") != "L":
        raise op.unsupported("it asks for the upper factor, which JAX never does")
    return [lax.linalg.cholesky(given[0], symmetrize_input=False), _done(given[0])]


def _getrf(op: Operation, given: Any) -> list[Any]:
    factors, pivots, _ = lax.linalg.lu(given[0])
    return [factors, pivots + 1, _done(given[0])]


def _geqrf(op: Operation, given: Any) -> list[Any]:
    return list(jax_names.geqrf(given[0]))


def _orgqr(op: Operation, given: Any) -> list[Any]:
    return [lax.linalg.householder_product(given[0], given[1])]


def _gesdd(op: Operation, given: Any) -> list[Any]:
    x, mode = given[0], _letter(op, "mode")
    if mode == "N":
        raise op.unsupported("its singular vectors are not asked for; export with compute_uv=True")
    u, s, v = lax.linalg.svd(x, full_matrices=mode == "A", compute_uv=True)
    return [x, s, u, v, _done(x)]


def _syevd(op: Operation, given: Any) -> list[Any]:
    lower = _letter(op, "uplo") == "L"
    vectors, values = lax.linalg.eigh(
        given[0], lower=lower, symmetrize_input=False, sort_eigenvalues=False
    )
    return [vectors, values, _done(given[0])]


def _trsm(op: Operation, given: Any) -> list[Any]:
    found = lax.linalg.triangular_solve(
        given[0],
        given[1],
        left_side=_letter(op, "side") == "L",
        lower=_letter(op, "uplo") == "L",
        transpose_a=_letter(op, "trans_x") in "TC",
        conjugate_a=_letter(op, "trans_x") == "C",
        unit_diagonal=_letter(op, "diag") == "U",
    )
    return [found]


SOLVERS: dict[str, Solver] = {
    "potrf": _potrf,
    "getrf": _getrf,
    "geqrf": _geqrf,
    "orgqr": _orgqr,
    "ungqr": _orgqr,
    "gesdd": _gesdd,
    "syevd": _syevd,
    "heevd": _syevd,
    "trsm": _trsm,
}
"""Calls of LAPACK by its names of routines, without the letter of the type."""

PASSED_ON = (
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "annotate_device_placement",
    "LayoutConstraint",
)
"""Calls that say where and how an array lies."""


@reads("sdy.sharding_constraint")
def _placed(cx: Any, op: Operation, x: Any) -> Any:
    """Of one device, as those of programs that are read, all arrays lie there."""
    return x


@reads("custom_call")
def _custom_call(cx: Any, op: Operation, *operands: Any) -> Any:
    target = op.word("call_target_name")
    if target == "shape_assertion":  # Sizes are what the specs say.
        return []
    if target in PASSED_ON:
        return [as_array(operands[0])]
    if target == "stablehlo.dynamic_reduce_window":
        return _dynamic_window(cx, op, operands)
    found = _LAPACK.fullmatch(target)
    solver = SOLVERS.get(found.group(1)) if found else None
    if solver is None:
        raise op.unsupported(f"it calls {target!r}, which runs outside of StableHLO", "E101")
    # What follows the operands of a solver are sizes for the shapes of its results.
    return solver(op, [*map(as_array, operands)])[: len(op.view.results)]


def _dynamic_window(cx: Any, op: Operation, operands: Any) -> Any:
    x, start = map(as_array, operands[:2])
    dims, strides, base, dilation, padding = (cx.dims(op, each) for each in operands[2:])
    pairs = list(zip(padding[::2], padding[1::2], strict=True))
    (name,) = (str(item.value) for item in op.view.attributes["called_computations"])
    region = cx.functions[name].regions[0]
    return window(cx, op, region, (x, start), (dims, strides, pairs, base, dilation))


@reads("composite")
def _composite(cx: Any, op: Operation, *operands: Any) -> Any:
    name = op.word("name")
    known = CHLO.get(name.removeprefix("chlo."))
    if known is not None and name.startswith("chlo."):
        return known(*map(as_array, operands))
    if name == "chlo.top_k":
        return list(lax.top_k(as_array(operands[0]), op.entry("composite_attributes", "k")))
    return cx.function(op.word("decomposition"), operands, op)


@reads("chlo.top_k")
def _top_k(cx: Any, op: Operation, x: Any) -> Any:
    return list(lax.top_k(x, op.integer("k")))
