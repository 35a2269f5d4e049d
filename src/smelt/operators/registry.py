"""The table of operators: those of this package, and others by entry points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx_ir as ir
from onnx_shape_inference import OpUsageError, ShapeInferenceContext

from smelt.errors import UsageError
from smelt.extensions import extensions
from smelt.ir.same_shape import Dim
from smelt.ir.shapes.shape_registry import registry as shape_rules
from smelt.operators.declare import Operator, Result
from smelt.registry import Registry, owner_of

ENTRY_POINTS = "smelt.operators"


def find(domain: str, name: str) -> Operator | None:
    """Return the operator ``domain.name``, or None."""
    return OPERATORS.get((domain, name))


def all_operators() -> tuple[Operator, ...]:
    """Return every operator, sorted by domain and name."""
    return tuple(OPERATORS[key] for key in sorted(OPERATORS))


def register_all() -> None:
    """Register every operator and its shape rule, including those of installed packages."""
    OPERATORS.fill()


def register(*operators: Operator, package: str = "") -> None:
    """Add operators and their shape rules; ``package`` names who declares them, for messages.

    The reference of an operator identifies it: a second declaration with the function of that name
    in the same module replaces the first. Raises UsageError E640 if another operator has the name.
    """
    for operator in operators:
        if OPERATORS.add(operator.key, operator, owner_of(operator.defining, package)):
            _register_shape_rule(operator)


def is_installed(operator: Operator) -> bool:
    """True if a package declares ``operator``, so that another process has it, too."""
    return bool(OPERATORS.owner(operator.key).package)


def _fill() -> None:
    """Register the operators of all entry points."""
    for entry_point in extensions(ENTRY_POINTS):
        register(
            *checked(entry_point.name, entry_point.loaded if not entry_point.error else ()),
            package=entry_point.package,
        )


OPERATORS: Registry[tuple[str, str], Operator] = Registry(
    "E640", lambda key: f"operators are called {key[0]}.{key[1]}", _fill
)


def checked(name: str, loaded: object) -> list[Operator]:
    """Return the object of the entry point ``name`` as operators; raises UsageError E641
    otherwise."""
    if isinstance(loaded, Operator):
        return [loaded]
    items = list(loaded) if isinstance(loaded, Iterable) else [loaded]
    operators = [item for item in items if isinstance(item, Operator)]
    if len(operators) != len(items):
        raise UsageError(
            "E641",
            f"entry point {name!r} of {ENTRY_POINTS} does not name an operator",
            fix="let it name an Operator or a sequence of them",
            why="smelt loads the objects that these entry points name",
        )
    return operators


def _register_shape_rule(operator: Operator) -> None:
    """Register ``operator.infer`` as a rule of shape inference, with checks around it.

    The rule refuses operands by OpUsageError, and raises UsageError E646 if ``infer`` fails or
    returns other things than one Result per output.
    """

    def infer(ctx: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the results; raises OpUsageError for operands that the operator refuses."""
        if operator.runtime and not operator.knows(node):
            return
        attributes = operator.attributes_of(node)
        try:
            operator.check_operands(node.inputs)
            results = operator.infer(tuple(node.inputs), attributes)
        except ValueError as error:
            raise OpUsageError(node, str(error)) from error
        except Exception as error:
            raise _broken(node, f"{type(error).__name__}: {error}") from error
        if not _are_results(results, len(node.outputs)):
            raise _broken(node, f"it returned {str(results)[:80]}, not one Result per output")
        for value, result in zip(node.outputs, results, strict=False):
            ctx.set_shape_and_dtype(value, _with_named_dims(ctx, result.shape), result.dtype)

    shape_rules.register(operator.domain, operator.name, since_version=operator.version)(infer)


def _are_results(results: object, outputs: int) -> bool:
    """True if ``results`` holds at least ``outputs`` entries, each a valid Result."""
    if not isinstance(results, Sequence) or len(results) < outputs:
        return False
    return all(
        isinstance(result, Result)
        and isinstance(result.dtype, ir.DataType | None)
        and isinstance(result.shape, ir.Shape | None)
        for result in results
    )


def _broken(node: ir.Node, why: str) -> UsageError:
    """Return the error E646 for the shape rule of the operator of ``node``."""
    return UsageError(
        "E646",
        f"the shape rule of operator {node.domain}.{node.op_type} breaks its declaration",
        at=f"node {node.name!r}",
        why=why,
        fix="let `infer` return one Result per output, and raise ValueError for wrong inputs",
    )


def _with_named_dims(ctx: ShapeInferenceContext, shape: ir.Shape | None) -> ir.Shape | None:
    """Return ``shape`` with a new symbol for each unknown dim."""
    if shape is None or not any(_is_unknown(dim) for dim in shape.dims):
        return shape
    return ir.Shape([ctx.new_symbolic_dim() if _is_unknown(dim) else dim for dim in shape.dims])


def _is_unknown(dim: Dim) -> bool:
    """True for a dim without a number and without a name."""
    return not isinstance(dim, int) and dim.value is None
