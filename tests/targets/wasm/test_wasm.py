"""A model as WebAssembly computes in Node what it computes here, and its JavaScript says what is wrong."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from c_library import with_constants
from webassembly import needs_wasm, node

import smelt
from smelt.errors import UsageError
from smelt.ir import text
from smelt.runtime import wasm_compiler, wasm_runner
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.targets.saved import open_saved
from smelt.targets.wasm import wasm
from smelt.targets.wasm.module import (
    DATA,
    HEADER,
    Reader,
    addresses,
    sections,
    signed,
    unsigned,
    with_data,
)

OPEN = """g (float[B,4] x, int64[B] n) => (float[B,3] y, int64[B] twice)
    <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> { m = MatMul(x, w) y = Tanh(m) twice = Add(n, n) }"""
TYPES = """g (float16[3] h, bool[3] b, uint8[3] u, double[3] d) => (float16[3] a, bool[3] c, uint8[3] v, double[3] e)
    { a = Add(h, h) c = Not(b) v = Max(u) e = Exp(d) }"""
FOUND = "g (float[6] x) => (int64[1,N] places) { places = NonZero(x) }"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with an open size, and weights beside the module."""
    path = tmp_path_factory.mktemp("open")
    options = {"dims": {"B": (1, 5)}, "weights": "beside", "plain": False}
    smelt.compile(text.parse(OPEN), target=wasm, **options).save(path)
    return path


@needs_wasm()
def test_a_saved_folder_computes_at_each_size(folder: Path) -> None:
    saved = open_saved(folder)
    for size in (1, 5):
        x = np.linspace(-1, 1, 4 * size, dtype=np.float32).reshape(size, 4)
        y, twice = saved(x, np.arange(size) - 2)
        w = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
        np.testing.assert_allclose(y, np.tanh(x @ w), rtol=1e-6)
        assert twice.tolist() == [2 * (i - 2) for i in range(size)]
    with pytest.raises(UsageError, match="B=6"):
        saved(np.zeros((6, 4), np.float32), np.zeros(6, np.int64))


@needs_wasm()
def test_every_kind_of_element_goes_in_and_out() -> None:
    artifact = smelt.compile(text.parse(TYPES), target=wasm, plain=False)
    h = np.array([1.5, -0.0, np.inf], np.float16)
    b, u = np.array([True, False, True]), np.array([0, 7, 255], np.uint8)
    d = np.array([0, 1, -np.inf])
    results = artifact(h, b, u, d)
    for result, expected in zip(results, (h + h, ~b, u, np.exp(d)), strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-15)


@needs_wasm()
def test_a_result_whose_size_the_data_decide_has_its_shape() -> None:
    artifact = smelt.compile(text.parse(FOUND), target=wasm, plain=False, dims={"N": (0, 6)})
    for x in ([0, 1, 0, 2, 0, 3], [0] * 6):
        (places,) = artifact(np.array(x, np.float32))
        assert places.tolist() == [np.flatnonzero(x).tolist()]


NAMES = ("__proto__", '"*/ /* outputs */', "constructor", "10", "2", "valueOf", "é\n")
"""Names of inputs, then of outputs; objects of JavaScript list those that are numbers first."""


@pytest.fixture(scope="module")
def oddly_named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = text.parse("""g (float[2] x, bool[2] b, float[2] c) => (float[2] y, float[2] z, float[2] t, float[2] n)
        { y = Neg(x) z = Add(x, c) t = Cast<to=1>(b) no = Not(b) n = Cast<to=1>(no) }""")
    for value, name in zip((*model.graph.inputs, *model.graph.outputs), NAMES, strict=True):
        value.name = name
    path = tmp_path_factory.mktemp("names")
    smelt.compile(model, target=wasm, plain=False).save(path)
    return path


@needs_wasm()
def test_results_keep_their_order_whatever_they_are_called(oddly_named: Path) -> None:
    run = open_saved(oddly_named)
    x, b, c = np.array([1, 2], "f4"), np.array([True, False]), np.array([10, 20], "f4")
    with ThreadPoolExecutor(4) as pool:  # calls of several threads do not mix
        each = list(pool.map(lambda i: run(x + i, b, c), range(40)))
    for i, results in enumerate(each):
        for result, expected in zip(results, (-x - i, x + i + c, b, ~b), strict=True):
            np.testing.assert_array_equal(result, expected)


@needs_wasm()
def test_javascript_takes_any_name_and_any_truth(oddly_named: Path) -> None:
    given = (
        '["__proto__"]: new Float32Array([1, 2]), ["\\"*/ /* outputs */"]: new Uint8Array([255, 0])'
    )
    script = f"""import {{ load }} from "./model.mjs";
    const model = await load();
    const none = await model.run({{ {given} }}).catch((error) => error.message);
    const got = await model.run({{ {given}, constructor: new Float32Array([10, 20]) }});
    tell([none, model.outputs.map(({{ name }}) => got[name])]);"""
    none, results = node(oddly_named, script)
    assert 'no value for input "constructor"' in none
    assert results == [[-1, -2], [11, 22], [1, 0], [0, 1]]
    types = (oddly_named / "model.d.ts").read_text()
    assert types.count("export interface") == 7
    assert r'"\"*/ /* outputs */": Tensor<Uint8Array>;' in types


CALLS = {
    "{}": 'there is no value for input "x"',
    "{ y: 1 }": 'no input "y"',
    "{ x: [1, 2, 3, 4], n }": "must be Float32Array [B, 4], not Array",
    "{ x: new Float32Array(4), n: new Int32Array(1) }": "BigInt64Array.from(values), of BigInts",
    "{ x: new Float32Array(9), n }": "no multiple of 4",
    "{ x: new Float32Array(24), n }": "B=6 is not a whole number from 1 to 5",
    "{ x: new Float32Array(8), n }": "is 2 elements, not 1",
    "{ x: { data: new Float32Array(4), shape: [1, 5] }, n }": "give the shape [1, 4]",
    "null": "one array per input",
}


@needs_wasm()
def test_javascript_says_what_is_wrong(folder: Path) -> None:
    script = f"""import {{ load }} from "./model.mjs";
    const n = new BigInt64Array(1);
    const model = await load(new URL("./", import.meta.url));
    const said = [];
    for (const inputs of [{", ".join(CALLS)}]) {{
        await model.run(inputs).then(() => said.push(""), (error) => said.push(error.message));
    }}
    const {{ y }} = model.runSync({{ x: new Float32Array(8), n: new BigInt64Array(2) }});
    tell([said, y.shape, y, model.inputs[0]]);"""
    said, shape, y, port = node(folder, script)
    for message, part in zip(said, CALLS.values(), strict=True):
        assert part in message
        assert "To fix: " in message
    assert shape == [2, 3]
    assert y == [0] * 6
    assert port == {"name": "x", "type": "float32", "array": "Float32Array", "shape": ["B", 4]}


@needs_wasm()
def test_the_module_comes_from_bytes_urls_and_responses(folder: Path) -> None:
    script = """import { readFileSync } from "node:fs";
    import { load } from "./model.mjs";
    const bytes = readFileSync("model.wasm"), weights = readFileSync("model.weights");
    const typed = { headers: { "content-type": "application/wasm" } };
    const sources = [
        [], [new WebAssembly.Module(bytes), { weights }], [bytes, { weights: new Response(weights) }],
        [new Response(bytes, typed), { weights }], [Promise.resolve(new Response(bytes)), { weights }],
    ];
    const inputs = { x: new Float32Array([1, 0, 0, 0]), n: new BigInt64Array(1) };
    const results = [];
    for (const source of sources) results.push((await (await load(...source)).run(inputs)).y[0]);
    const cut = await load(bytes, { weights: weights.subarray(1) }).catch((error) => error.message);
    const gone = await load(new Response("", { status: 404 }), { weights }).catch((error) => error.message);
    tell([results, cut, gone]);"""
    results, cut, gone = node(folder, script)
    assert results == [pytest.approx(np.tanh(1))] * 5
    assert "the weights have 63 bytes, not 64" in cut or "bytes, not" in cut
    assert "404" in gone


WORKERS = """import { loadInWorker } from "./model.mjs";
const workers = [];
globalThis.Worker = class {
    constructor() { workers.push(this); }
    postMessage({ id, load }) {
        const error = load[0] ? { message: "no module" } : undefined;
        if (load) queueMicrotask(() => this.onmessage({ data: { id, error } }));
    }
    terminate() { this.ended = true; }
};
const said = (error) => error.message;
const broken = await loadInWorker("broken").catch(said);
const closed = await loadInWorker();
closed.close();
const failed = await loadInWorker();
workers[2].onerror({ message: "it crashed" });
tell([broken, await closed.run({}).catch(said), await failed.run({}).catch(said), workers.map((each) => each.ended)]);"""


@needs_wasm()
def test_a_worker_that_ended_answers_no_run_and_stays_no_longer(folder: Path) -> None:
    broken, closed, failed, ended = node(folder, WORKERS)
    assert broken == "no module"
    assert "the model was closed" in closed
    assert "it crashed" in failed
    assert ended == [True, True, True]


CONVOLUTIONS = """g (float[1,3,13,17] x, float[20,3,3,3] w, float[20,1,5,3] v, float[37,20,1,1] u) => (float[1,37,5,15] y)
    { a = Conv<pads=[1,1,1,1]>(x, w) b = Relu(a) c = Conv<group=20, strides=[2,1]>(b, v) y = Conv(c, u) }"""


@needs_wasm()
def test_convolutions_are_the_same_with_and_without_vectors(tmp_path: Path) -> None:
    model = with_constants(CONVOLUTIONS, 23, "w v u")
    artifact = smelt.compile(model.clone(), target=wasm)
    artifact.save(tmp_path)
    x = np.sin(np.arange(663, dtype=np.float32)).reshape(1, 3, 13, 17)
    (expected,) = OnnxRuntime(model)(x)
    script = """import { load } from "./model.mjs";
    const x = Float32Array.from({ length: 663 }, (_, i) => Math.sin(i));
    const results = [];
    for (const file of ["model.wasm", "model.plain.wasm"]) {
        results.push((await (await load(new URL(file, import.meta.url))).run({ x })).y);
    }
    tell(results);"""
    for result in (artifact(x)[0], *node(tmp_path, script)):
        np.testing.assert_allclose(np.reshape(result, expected.shape), expected, atol=1e-4)


IMAGES = """import {{ load }} from "./model.mjs";
const model = await load();
const ramp = (length) => Uint8Array.from({{ length }}, (_, i) => (7 * i) % 256);
const run = async (x) => [...(await model.run({{ x }})).y];
const said = await model.run({{ x: new Uint8Array(5) }}).catch((error) => error.message);
tell([await run(ramp({n})), await run({{ data: ramp({rgba}), channels: 4 }}), await run({{ data: ramp(12), channels: 1 }}), said]);"""


@needs_wasm()
@pytest.mark.parametrize("shape", ["1,3,2,6", "1,2,6,3", "1,1,2,6"])
def test_bytes_of_images_become_floats(shape: str, tmp_path: Path) -> None:
    model = text.parse(f"g (float[{shape}] x) => (float[{shape}] y) {{ y = Identity(x) }}")
    dims = [int(dim) for dim in shape.split(",")]
    colours = 1 if dims[1] == 1 else 3
    mean, std = np.array([0.5, 0.25, 0.75][:colours]), np.array([0.5, 1, 2][:colours])
    options = {"image_mean": ",".join(map(str, mean)), "image_std": ",".join(map(str, std))}
    smelt.compile(model, target=wasm, plain=False, images="x", **options).save(tmp_path)
    got = node(tmp_path, IMAGES.format(n=12 * colours, rgba=48))
    for channels, values in zip((colours, 4, 1), got[:3], strict=True):
        pixels = (7 * np.arange(12 * channels) % 256).reshape(2, 6, channels)
        if colours == 1 and channels == 4:
            pixels = pixels[..., :3] @ np.array([[0.299], [0.587], [0.114]])
        scaled = (np.broadcast_to(pixels[..., :3], (2, 6, colours)) / 255 - mean) / std
        expected = scaled if dims[1] == 2 else np.moveaxis(scaled, -1, 0)
        np.testing.assert_allclose(values, expected.reshape(-1), atol=1e-6)
    assert "an image has 12 pixels" in got[3]


@pytest.mark.parametrize(
    "option",
    [{"images": "z"}, {"images": "x", "image_mean": "1,2"}, {"images": "x", "image_std": "0"}],
)
def test_wrong_options_of_images_are_refused(option: dict[str, str]) -> None:
    model = text.parse("g (float[1,3,2,6] x) => (float[1,3,2,6] y) { y = Relu(x) }")
    with pytest.raises(UsageError, match="target 'wasm' does not compile"):
        smelt.compile(model, target=wasm, **option)


def test_what_is_no_image_is_refused() -> None:
    with pytest.raises(UsageError, match="1 or 3 channels"):
        smelt.compile(
            text.parse("g (float[1,5,2,6] x) => (float[1,5,2,6] y) { y = Relu(x) }"),
            target=wasm,
            images="x",
        )


@needs_wasm()
def test_the_folder_is_an_npm_package(folder: Path) -> None:
    package = json.loads((folder / "package.json").read_bytes())
    assert all((folder / file).is_file() for file in package["files"])
    types = (folder / "model.d.ts").read_text()
    assert '"x": Tensor<Float32Array>;' in types
    assert '"twice": Result<BigInt64Array>;' in types


@needs_wasm()
def test_a_changed_file_is_refused(folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "model.weights").write_bytes(bytes(3))
    with pytest.raises(UsageError, match=r"'model.weights' is damaged"):
        open_saved(tmp_path)
    (tmp_path / "model.wasm").unlink()
    with pytest.raises(UsageError, match=r"'model.wasm' is missing"):
        open_saved(tmp_path)


def test_without_a_compiler_both_ways_to_install_one_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SMELT_WASM_CC", "no-such-compiler --flag")
    with pytest.raises(UsageError) as caught:
        wasm_compiler.compiler_command()
    assert caught.value.code == "E675"
    assert "clang lld wasi-libc" in caught.value.fix
    assert "[wasm]" in caught.value.fix


def test_without_node_and_wasmtime_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMELT_NODE", "")
    monkeypatch.setattr(wasm_runner, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        wasm_runner.engine_of({}, "model", None, {}, {})
    assert caught.value.code == "E676"


@pytest.mark.parametrize("option", [{"weights": "hex"}, {"name": "package"}, {"name": "a-b"}])
def test_wrong_options_are_refused(option: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        smelt.compile(text.parse(FOUND), target=wasm, **option)
    assert caught.value.code == "E660"


@pytest.mark.parametrize("number", [0, 1, 63, 64, 127, 128, 2**31 - 1, 2**32 - 1])
def test_numbers_in_leb128_are_read_as_written(number: int) -> None:
    assert Reader(unsigned(number)).unsigned() == number
    for each in (number, -number):
        assert Reader(signed(each)).signed() == each


def test_data_is_added_to_a_module_with_and_without_some() -> None:
    once = with_data(HEADER, 2**31 + 5, b"abc")
    twice = with_data(once, 7, b"d")
    [(kind, contents)] = list(sections(twice))
    assert kind == DATA
    assert contents[0] == 2
    assert Reader(contents, 3).signed() == 2**31 + 5 - 2**32
    assert contents.endswith(b"\x00\x41\x07\x0b\x01d")


@needs_wasm()
def test_exported_globals_are_the_addresses_of_buffers() -> None:
    code = "int run(void); int run(void) { return 0; } int here[4] __attribute__((aligned(64)));"
    assert addresses(wasm_compiler.build(code, ["run", "here"]))["here"] % 64 == 0
