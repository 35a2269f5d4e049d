"""Generate text by a decoder and its tokenizer.

    pip install tokenizers
    python examples/generate_text.py decoder tokenizer.json "Once upon a time"

``decoder`` is an ONNX file, or a folder that ``smelt generate -o`` wrote. smelt takes and returns
numbers of tokens; the package ``tokenizers`` makes them of a text, and a text of them.
"""

from __future__ import annotations

import sys

from tokenizers import Tokenizer

import smelt

END = ("</s>", "<|endoftext|>", "<|im_end|>", "<eos>")
"""Names of the token that ends a text, in tokenizers of known models."""


def main(model: str, tokenizer_file: str, text: str) -> None:
    """Print the text, then each further part of it as soon as its tokens are known."""
    tokenizer = Tokenizer.from_file(tokenizer_file)
    stop = [number for name in END if (number := tokenizer.token_to_id(name)) is not None]
    decoder = smelt.Decoder(model)
    ids = tokenizer.encode(text).ids
    print(text, end="", flush=True)
    shown = len(tokenizer.decode(ids))
    new: list[int] = []
    for token in decoder.stream(ids, 64, stop=stop, temperature=0.8, top_k=40, seed=0):
        new.append(token)
        # One character may take several tokens, so the whole text is decoded again.
        so_far = tokenizer.decode(ids + new)
        if not so_far.endswith("\ufffd"):
            print(so_far[shown:], end="", flush=True)
            shown = len(so_far)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:4])
