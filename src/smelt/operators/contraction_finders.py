"""Call the path finders of opt_einsum and cotengra, and finders of callers, as each expects it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from smelt.errors import UsageError
from smelt.operators.contraction import Equation


def is_of(finder: Any, package: str) -> bool:
    """True if ``finder`` is a function, or an object of a class, of ``package``."""
    while isinstance(finder, partial):
        finder = finder.func
    module = finder.__module__ if inspect.isroutine(finder) else type(finder).__module__
    return str(module).partition(".")[0] == package


def finds_trees(finder: Any) -> bool:
    """True for a finder of cotengra that returns trees, with slices."""
    owner = getattr(finder, "__self__", finder)
    is_function = inspect.isroutine(owner) or isinstance(owner, partial)
    return is_of(finder, "cotengra") and (is_function or hasattr(owner, "search"))


def is_tree(optimize: Any) -> bool:
    """True for a ``ContractionTree`` of cotengra, which is not imported for this."""
    return hasattr(optimize, "get_path") and hasattr(optimize, "sliced_inds")


def finder_named(name: str) -> Callable[..., Any]:
    """Return the finder called ``name``; raises UsageError E658 if there is none."""
    from opt_einsum import paths

    with suppress(KeyError):
        finder: Callable[..., Any] = paths.get_path_fn(name)
        return finder
    if find_spec("cotengra") is not None:
        import_module("cotengra")  # it registers its finders with opt_einsum
        with suppress(KeyError):
            cotengra_finder: Callable[..., Any] = paths.get_path_fn(name)
            return cotengra_finder
    raise UsageError(
        "E658",
        f"opt_einsum has no path algorithm named {name!r}",
        fix="use one of auto, greedy and dp, or another name in the documentation of opt_einsum",
        why="optimize= names an algorithm of opt_einsum, or of cotengra if it is installed",
    )


def tree_named(name: str, equation: Equation, counts: Mapping[str, int]) -> Any:
    """Return the ``ContractionTree`` that cotengra's finder ``name`` finds."""
    import cotengra

    inputs, out, sizes = _with_letters(equation, counts)

    def find(inputs: Any, out: Any, sizes: Any) -> Any:
        """Return the tree; its labels are those of ``inputs``."""
        return cotengra.array_contract_tree(inputs, out, sizes, optimize=name, canonicalize=False)

    return _called(find, inputs, out, sizes, name=name)


def searched_tree(finder: Any, equation: Equation, counts: Mapping[str, int]) -> Any:
    """Return the ``ContractionTree`` that an optimizer of cotengra finds, with its slices."""
    return _called(finder.search, *_with_letters(equation, counts))


def tree_from_path(
    equation: Equation, counts: Mapping[str, int], path: Any
) -> tuple[Any, dict[str, str]]:
    """Return the ``ContractionTree`` of ``path``, and the label of each of its characters."""
    import cotengra

    tree = cotengra.ContractionTree.from_path(*_with_letters(equation, counts), path=path)
    return tree, {letter: label for label, letter in _letters(counts).items()}


def path_by(
    finder: Callable[..., Any], equation: Equation, counts: Mapping[str, int], limit: int | None
) -> list[tuple[int, ...]]:
    """Return the path that ``finder`` returns for sets of labels.

    Finders of opt_einsum get numbers as labels, because the order of a set of texts differs between
    processes. Others get one character for each label, which the optimizers of cotengra demand.
    ``limit`` is passed to finders that take a fourth argument.
    """
    if is_of(finder, "opt_einsum"):
        number_of: Mapping[str, Any] = {label: index for index, label in enumerate(counts)}
    else:
        number_of = _letters(counts)
    as_set = set if is_of(finder, "cotengra") else frozenset
    inputs = [as_set(number_of[label] for label in term) for term in equation.terms]
    out = as_set(number_of[label] for label in equation.out)
    arguments: list[Any] = [inputs, out, {number_of[label]: n for label, n in counts.items()}]
    if _takes_limit(finder):
        arguments.append(limit)
    path = _called(finder, *arguments)
    try:
        return [tuple(int(i) for i in step) for step in path]
    except (TypeError, ValueError) as error:
        raise UsageError(
            "E658",
            f"the path finder {_name(finder)} returned {path!r}, which is not a path",
            fix="return pairs of operand numbers, such as [(0, 1), (0, 1)]",
            why="each step of a path is a pair of whole numbers",
        ) from error


def _takes_limit(finder: Callable[..., Any]) -> bool:
    """True if ``finder`` takes four positional arguments, the last of which is the limit."""
    try:
        inspect.signature(finder).bind((), (), {}, None)
    except TypeError:
        return False
    except ValueError:  # a function without a signature
        return True
    return True


def _called(find: Callable[..., Any], *arguments: Any, name: str = "") -> Any:
    """Return what ``find`` returns; raises UsageError E658 from the error that it raises."""
    try:
        return find(*arguments)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            "E658",
            f"the path finder {name or _name(find)} failed",
            why=f"{type(error).__name__}: {error}",
            fix="use optimize='auto', or another finder",
        ) from error


def _name(finder: Any) -> str:
    """Return a name of ``finder`` for messages."""
    owner = getattr(finder, "__self__", finder)
    return str(getattr(owner, "__qualname__", type(owner).__qualname__))


def _letters(counts: Mapping[str, int]) -> dict[str, str]:
    """Return one character for each label."""
    from opt_einsum import get_symbol

    return {label: get_symbol(index) for index, label in enumerate(counts)}


def _with_letters(
    equation: Equation, counts: Mapping[str, int]
) -> tuple[list[tuple[str, ...]], tuple[str, ...], dict[str, int]]:
    """Return operands, result and sizes with a character for each label, as cotengra takes them."""
    letters = _letters(counts)
    inputs = [tuple(letters[label] for label in term) for term in equation.terms]
    out = tuple(letters[label] for label in equation.out)
    return inputs, out, {letters[label]: n for label, n in counts.items()}
