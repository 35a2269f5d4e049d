"""``torch.compile(f, backend="smelt")`` computes what ``f`` computes, or says why it does not."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'smelt-compiler[torch]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'smelt-compiler[torch]'")

import torch
from torch import nn

from smelt.pytorch import backend, program

pytestmark = pytest.mark.slow  # PyTorch's exporter takes a second for a graph.


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch):
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error", RuntimeWarning)
        yield


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The models that were compiled for the target."""
    compiled: list[object] = []
    compile_model = program.compile_model

    def recorded(model, **options):
        compiled.append(model)
        return compile_model(model, **options)

    monkeypatch.setattr(program, "compile_model", recorded)
    return compiled


def _compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend=backend.compile_graph, options=options)


def _same(function: Any, *inputs: Any, compiled: Any = None, **kwargs: Any) -> None:
    """Check that both give equal results, of equal types and structures."""
    results = (_compiled(function) if compiled is None else compiled)(*inputs, **kwargs)
    torch.testing.assert_close(results, function(*inputs, **kwargs), atol=2e-5, rtol=2e-5)


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 3)).eval()


def test_pytorch_finds_the_backend() -> None:
    if "smelt" not in torch._dynamo.list_backends():
        pytest.skip("smelt is not installed with its entry points")
    compiled = torch.compile(_mlp(), backend="smelt")
    assert compiled(torch.randn(2, 6)).shape == (2, 3)


def test_sizes_that_change_become_open(compiles) -> None:
    model = _mlp()
    compiled = _compiled(model)
    for rows in (2, 3, 4, 9, 1):
        _same(model, torch.randn(rows, 6), compiled=compiled)
    assert len(compiles) <= 3, "one for the first size, one for all others, one for one row"


def test_results_have_the_structure_of_the_function() -> None:
    def function(x, *, scale, flags=None):
        n = x.shape[0]
        return {"scaled": x * scale, "sizes": (n, n * 2), "same": x, "none": None, "flags": flags}

    compiled = _compiled(function)
    for rows in (3, 5, 7):
        _same(function, torch.randn(rows, 2), scale=2.5, flags=True, compiled=compiled)


def test_a_view_of_an_argument_stays_a_view() -> None:
    x = torch.randn(3, 4)
    view, doubled = _compiled(lambda x: (x.view(-1), x * 2))(x)
    assert view.data_ptr() == x.data_ptr()
    torch.testing.assert_close(doubled, x * 2)


def test_an_argument_that_the_function_changes_is_changed() -> None:
    def step(cache, x):
        cache[:, 1] = x
        return cache.sum(), cache

    cache, expected = torch.zeros(2, 3), torch.zeros(2, 3)
    total, returned = _compiled(step)(cache, torch.ones(2))
    torch.testing.assert_close(total, step(expected, torch.ones(2))[0])
    torch.testing.assert_close(cache, expected)
    assert returned is cache


def test_a_buffer_that_each_call_changes_is_no_constant(compiles) -> None:
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(1))
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            self.count += 1
            return self.layer(x) * self.count

    model = Counter()
    compiled = _compiled(model)
    x = torch.randn(1, 2)
    for call in range(1, 7):
        torch.testing.assert_close(compiled(x), model.layer(x) * call)
    assert len(compiles) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda weight: weight.mul_(2),
        lambda weight: setattr(weight, "data", weight.data * 3),
        lambda weight: weight.copy_(torch.ones_like(weight)),
    ],
    ids=["in place", "data", "loaded"],
)
def test_changed_parameters_are_seen(change) -> None:
    model = nn.Linear(4, 4)
    compiled = _compiled(model)
    x = torch.randn(2, 4)
    for _ in range(4):
        _same(model, x, compiled=compiled)
        change(model.weight)
    _same(model, x, compiled=compiled)


def test_equal_layers_share_a_graph_but_no_parameters(compiles) -> None:
    layers = [nn.Linear(4, 4).eval() for _ in range(3)]

    class Layer(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return torch.relu(self.inner(x))

    modules = [Layer(layer) for layer in layers]
    compiled = _compiled(lambda module, x: module(x))
    x = torch.randn(2, 4)
    for _ in range(2):
        for module in modules:
            torch.testing.assert_close(compiled(module, x), module(x))
    assert len(compiles) == 3


def test_parameters_are_not_copied_into_arguments() -> None:
    model = nn.Linear(64, 64)
    compiled = _compiled(model, freeze=False)
    x = torch.randn(2, 64)
    for _ in range(2):
        _same(model, x, compiled=compiled)
        model.weight.data.mul_(2)  # such a change has no version, and freeze=False sees it


def test_graph_breaks_are_parts_of_their_own() -> None:
    def function(x):
        y = torch.sin(x) * 2
        torch._dynamo.graph_break()
        if y.sum() > 0:
            return torch.relu(y) + 1
        return y - 1

    compiled = _compiled(function)
    for sign in (1, -1):
        _same(function, torch.full((3,), 0.5) * sign, compiled=compiled)


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.uint8, torch.bool],
    ids=str,
)
def test_element_types(dtype) -> None:
    x = torch.arange(6).reshape(2, 3).to(dtype)

    def function(x):
        return x.flip(0), torch.cat([x, x], 1)

    _same(function, x)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1, 1)])
def test_small_and_empty_tensors(shape) -> None:
    _same(lambda x: (x * 2 + 1, x.sum()), torch.randn(shape))


def test_strides_of_inputs() -> None:
    x = torch.randn(4, 6)
    for each in (x.t(), x[:, ::2], x.expand(2, 4, 6), x.to_sparse().to_dense()):
        _same(lambda x: torch.softmax(x, -1), each)


def test_special_values() -> None:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0])

    def function(x):
        return torch.maximum(x, -x), x.relu(), torch.nan_to_num(x), x.clamp(0, 1), 1 / x

    for result, expected in zip(_compiled(function)(x), function(x), strict=True):
        torch.testing.assert_close(result, expected, equal_nan=True)


def test_control_flow() -> None:
    def function(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos(), (x,))

    compiled = _compiled(function)
    for sign in (1, -1):
        _same(function, torch.full((3,), 0.5) * sign, compiled=compiled)


def test_gradients_are_refused() -> None:
    model = _mlp()
    with torch.enable_grad(), pytest.raises(Exception, match=r"E117.*computes no gradients"):
        _compiled(model)(torch.randn(2, 6))
    with torch.enable_grad():  # nothing here requires a gradient
        _same(torch.sin, torch.randn(3))
    with torch.inference_mode():
        _same(model, torch.randn(2, 6), compiled=_compiled(model))


def test_other_devices_are_refused() -> None:
    with pytest.raises(Exception, match=r"E117.*has no device 'meta'"):
        _compiled(torch.sin)(torch.zeros(3, device="meta"))


def _random(x):
    return nn.functional.dropout(torch.ones(1000), 0.5, training=True) + x


def _without_form(x):
    return torch.special.bessel_j0(x)


@pytest.mark.parametrize("function", [_random, _without_form])
def test_graphs_that_cannot_be_compiled_run_in_pytorch_after_a_warning(function) -> None:
    x = torch.zeros(1)
    compiled = _compiled(function)
    torch.manual_seed(3)
    with pytest.warns(RuntimeWarning, match=r"PyTorch runs a graph of .* cannot compile: E"):
        first = compiled(x)
    torch.manual_seed(3)
    torch.testing.assert_close(first, function(x))
    torch._dynamo.reset()
    with pytest.raises(Exception, match=r"E\d\d\d"):
        _compiled(function, fallback=False)(x)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"options": {"thread": 2}}, "did you mean 'threads'"),
        ({"options": {"threads": 0}}, "0 is not a value"),
        ({"options": {"engine": "gpu"}}, "'gpu' is not a value"),
    ],
)
def test_wrong_options_are_refused(options, words) -> None:
    compiled = torch.compile(torch.sin, backend=backend.compile_graph, **options)
    with pytest.raises(Exception, match=words):
        compiled(torch.zeros(2))


@pytest.mark.parametrize(
    "module",
    [nn.BatchNorm2d(3), nn.Dropout(), nn.InstanceNorm2d(3).eval()],
    ids=lambda m: type(m).__name__,
)
def test_a_program_that_differs_is_not_used(module: nn.Module) -> None:
    """PyTorch's exporter writes statistics of the batch as those of training, in silence."""
    x = torch.randn(2, 3, 8, 8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        compiled = _compiled(module)
        torch.manual_seed(1)
        compiled(x)
        torch.manual_seed(1)
        again = compiled(x)
    torch.manual_seed(1)
    torch.testing.assert_close(again, module(x))
    assert all(
        "PyTorch runs a graph" in str(w.message) for w in caught if w.category is RuntimeWarning
    )


def test_without_fallback_a_program_that_differs_is_an_error() -> None:
    with pytest.raises(Exception, match="computes other results than PyTorch"):
        _compiled(nn.BatchNorm2d(3), fallback=False)(torch.randn(2, 3, 8, 8))


def test_unverified_programs_are_used() -> None:
    result = _compiled(nn.BatchNorm2d(3), verify=False)(torch.randn(2, 3, 8, 8))
    assert result.shape == (2, 3, 8, 8)
