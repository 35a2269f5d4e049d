"""Call the path finders of opt_einsum and cotengra, and finders of callers, as each expects it."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from smelt.distribution import install
from smelt.errors import UsageError
from smelt.operators.contraction import Equation

COTENGRA_FINDERS = (
    *("edgesort", "greedy-compressed", "greedy-span", "ncon", "optimal-outer", "random"),
    *("flowcutter-2", "flowcutter-10", "flowcutter-60", "quickbb-2", "quickbb-10", "quickbb-60"),
    *("hyper", "hyper-256", "hyper-balanced", "hyper-betweenness", "hyper-compressed"),
    *("hyper-greedy", "hyper-kahypar", "hyper-labels", "hyper-spinglass"),
)
"""Names of finders that cotengra adds to those of opt_einsum."""

PROGRAMS = {
    "flowcutter": "the program flow_cutter_pace17 (github.com/kit-algo/flow-cutter-pace17)",
    "quickbb": "the program quickbb_64 (QuickBB, by V. Gogate and R. Dechter)",
}
"""Finders that start a program of their own, which must be in a folder of PATH."""

PACKAGES = {"betweenness": "igraph", "spinglass": "igraph", "kahypar": "kahypar"}
"""Packages that methods of cotengra's optimizers need."""

MISSING = re.compile(r"No module named '(\w+)'|No such file or directory: '(\w+)'")
"""Python's messages for a package or a program that is not installed; the groups are its name."""


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
    raise _unknown(name, paths)


def _unknown(name: str, paths: Any) -> UsageError:
    """Return E658: no path finder has this name, or its package is not installed."""
    if name in COTENGRA_FINDERS and find_spec("cotengra") is None:
        return UsageError(
            "E658",
            f"the path finder {name!r} is one of cotengra, which is not installed",
            why="smelt calls the finders of cotengra",
            fix=install("networks"),
        )
    known = {*map(str, paths._PATH_OPTIONS), *COTENGRA_FINDERS}
    similar = get_close_matches(name, sorted(known)) or ["auto", "greedy", "dp"]
    return UsageError(
        "E658",
        f"no path finder is named {name!r}",
        fix=f"use one of {', '.join(similar)}, or another name of opt_einsum or cotengra",
        why="optimize= names a path finder of opt_einsum or cotengra",
    )


def tree_named(name: str, equation: Equation, counts: Mapping[str, int]) -> Any:
    """Return the ``ContractionTree`` that cotengra's finder ``name`` finds."""
    import cotengra

    inputs, out, sizes = _with_letters(equation, counts)
    if name.startswith(tuple(PROGRAMS)):
        return _tree_by_program(name, inputs, out, sizes)

    def find(inputs: Any, out: Any, sizes: Any) -> Any:
        """Return the tree; its labels are those of ``inputs``."""
        return cotengra.array_contract_tree(inputs, out, sizes, optimize=name, canonicalize=False)

    return _called(find, inputs, out, sizes, name=name)


def _tree_by_program(
    name: str, inputs: Sequence[Any], out: Sequence[Any], sizes: Mapping[str, int]
) -> Any:
    """Return the tree that a finder finds by a program of its own.

    These finders of cotengra take operands as sets only.
    """
    import cotengra

    sets = [set(term) for term in inputs]
    path = _called(finder_named(name), sets, set(out), sizes, name=name)
    return cotengra.ContractionTree.from_path(inputs, out, sizes, path=path)


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


def _package_of_method(name: str) -> str:
    """Return the package that a finder called ``name`` needs and that is not installed; or ``""``.

    Trials run in other processes, whose warnings are lost.
    """
    needed = {package for method, package in PACKAGES.items() if name.endswith(method)}
    return next((package for package in sorted(needed) if find_spec(package) is None), "")


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
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = find(*arguments)
        except UsageError:
            raise
        except Exception as error:
            raise _failed(name or _name(find), error, [str(each.message) for each in caught]) from (
                error
            )
    for each in caught:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return found


def _failed(name: str, error: Exception, warned: list[str]) -> UsageError:
    """Return E658: a path finder raised ``error``, after the warnings ``warned``.

    The optimizers of cotengra only warn of the errors of their trials, such as a package that is
    not installed, and fail with another error when no trial is left.
    """
    reasons = [f"{type(error).__name__}: {error}", *reversed(warned)]
    found = next((match for text in reasons if (match := MISSING.search(text))), None)
    missing = (found[1] or found[2]) if found else _package_of_method(name)
    if not missing:
        trial = next((text for text in warned if text.startswith("Trial error")), reasons[0])
        why, fix = trial.partition(". Set")[0], "use optimize='auto', or another finder"
    else:
        why = f"{missing} is not installed"
        program = next((text for text in PROGRAMS.values() if missing in text), "")
        fix = f"install {program}" if program else f"pip install {missing}"
    return UsageError("E658", f"the path finder {name} failed", why=why, fix=fix)


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
