"""``smelt generate MODEL --ids 1,2,3``: generate tokens by a decoder."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli.arguments import STANDARD
from smelt.cli.command import Json, command, note, print_json
from smelt.cli.input_values import InputFiles, InputOption, read_inputs
from smelt.cli.progress import progress
from smelt.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

DecoderFile = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="An ONNX file: tokens and a past become logits and the past of the next step. Or a"
        " folder that -o wrote.",
    ),
]
First = Annotated[
    str | None,
    typer.Option(
        "--first",
        metavar="MODEL",
        help="The decoder without past, which reads the prompt.",
    ),
]
Ids = Annotated[
    str | None,
    typer.Option(
        "--ids",
        metavar="1,2,3|FILE",
        help="The prompt: token numbers, an .npy file, or - to read numbers from standard input.",
    ),
]
Folder = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FOLDER",
        help="Write the compiled decoder to this folder; it runs on machines with the same CPU.",
    ),
]
Context = Annotated[
    int,
    typer.Option(
        "--context", metavar="N", min=1, help="With -o: the most tokens of prompt and answer."
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="FILE",
        help="Weights in place of the model's, by name: GGUF, safetensors, .npz or orbax.",
    ),
]
Tokens = Annotated[
    int, typer.Option("--tokens", metavar="N", min=1, help="The most tokens to generate.")
]
Stop = Annotated[
    list[int] | None,
    typer.Option("--stop", metavar="ID", help="End after this token. Repeatable."),
]
Temperature = Annotated[
    float,
    typer.Option("--temperature", metavar="T", help="Draw tokens; 0 takes the most likely one."),
]
TopK = Annotated[
    int, typer.Option("--top-k", metavar="K", help="Draw among the K most likely tokens; 0: all.")
]
TopP = Annotated[
    float,
    typer.Option(
        "--top-p", metavar="P", help="Draw among the fewest tokens whose probabilities sum to P."
    ),
]
MinP = Annotated[
    float,
    typer.Option(
        "--min-p", metavar="P", help="Drop tokens less likely than P of the most likely one."
    ),
]
Penalty = Annotated[
    float,
    typer.Option("--repetition-penalty", metavar="X", help="Make earlier tokens less likely: 1.1."),
]
DrawSeed = Annotated[
    int | None, typer.Option("--seed", metavar="N", help="Draw the same tokens on each run.")
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", min=1, help="Threads of costly steps; 1 by default."),
]


@command
def generate(
    model: DecoderFile,
    ids: Ids = None,
    first: First = None,
    weights: Weights = None,
    tokens: Tokens = 64,
    stop: Stop = None,
    inputs: InputOption = None,
    input_file: InputFiles = None,
    temperature: Temperature = 0.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    min_p: MinP = 0.0,
    repetition_penalty: Penalty = 1.0,
    seed: DrawSeed = None,
    threads: Threads = None,
    output: Folder = None,
    context: Context = 2048,
    as_json: Json = False,
) -> None:
    """Generate tokens by a decoder, on this machine.

    The tokens appear on one line as they are known. A tokenizer of your choice makes tokens of a
    text, and a text of tokens.

    Example: smelt generate model.onnx --ids 464,2068,7586 --tokens 32 --temperature 0.8 --seed 0
    """
    from smelt.decoding.decoder import Decoder

    prompt = None if ids is None and output is not None else _prompt(ids)
    sampling = {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "seed": seed,
    }
    with progress(f"reading {model}") as shown:
        arrays = _arrays(inputs, input_file)
        decoder = Decoder(model, first, inputs=arrays, weights=weights, threads=threads)
        shown.say("compiling")
        if output is not None:
            decoder.save(output, context)
        if prompt is not None:
            new = decoder.stream(prompt, tokens, stop=stop or (), **sampling)
            generated = [next(new)]
    for text in decoder.notes:
        note(text)
    if prompt is not None:
        _show(len(prompt), generated, new, as_json)


def _show(prompt: int, generated: list[int], new: Iterator[int], as_json: bool) -> None:
    """Print ``generated``, then each token of ``new`` when it is known, then tokens a second."""
    begin = time.perf_counter()
    if not as_json:
        print(generated[0], end="", flush=True)
    for token in new:
        generated.append(token)
        if not as_json:
            print(f" {token}", end="", flush=True)
    seconds = time.perf_counter() - begin
    rate = (len(generated) - 1) / seconds if len(generated) > 1 else None
    if as_json:
        facts: dict[str, Any] = {"prompt": prompt, "tokens": generated}
        print_json({"schema": "smelt.generate/1", **facts, "tokens_per_second": rate})
    else:
        print()
        if rate is not None:
            note(f"{len(generated)} tokens, {rate:.1f} a second after the first")


def _prompt(ids: str | None) -> np.ndarray | list[int]:
    """Return the tokens of ``--ids``; raises UsageError E803 for text that is no list of tokens."""
    if ids is None:
        raise UsageError(
            "E803",
            "no prompt is given",
            why="--ids gives its tokens",
            fix="for instance: --ids 464,2068,7586",
        )
    if ids.endswith(".npy"):
        from smelt.runtime.array_files import read_arrays

        return read_arrays(ids)[""]
    text = sys.stdin.read() if ids == STANDARD else ids
    try:
        return [int(each) for each in text.replace(",", " ").split()]
    except ValueError:
        raise UsageError(
            "E803",
            f"--ids {ids!r} is no list of tokens",
            why="tokens are numbers, separated by commas or spaces",
            fix="for instance: --ids 464,2068,7586",
        ) from None


def _arrays(items: Sequence[str] | None, files: Sequence[str] | None) -> Mapping[str, np.ndarray]:
    """Return the arrays of ``--input NAME=FILE`` and ``--inputs`` by name.

    Raises UsageError E804 for inputs without a name or an array.
    """
    import numpy as np

    values = read_inputs(items, files, function=False)
    arrays = {n: value for n, value in values.named.items() if isinstance(value, np.ndarray)}
    if values.ordered or len(arrays) < len(values.named):
        raise UsageError(
            "E804",
            "an --input has no name or no array",
            why="further inputs of a decoder are arrays, found by their names",
            fix="for instance: --input encoder_hidden_states=states.npy",
        )
    return arrays
