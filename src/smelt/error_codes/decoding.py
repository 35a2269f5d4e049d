"""Errors in generating tokens."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E801": ErrorCode(
        "not a decoder",
        "A decoder has an input of tokens, int64[B,S], and an output of logits, float[B,S,V]. Each "
        "other input is a mask, positions, a past with an output for the next step, or an array "
        "that the caller gives. Without a past, the logits of a token must not depend on later "
        "tokens; those of an encoder such as BERT do.",
        "smelt generate decoder_with_past_model.onnx --first decoder_model.onnx --ids 1,2,3",
    ),
    "E802": ErrorCode(
        "options of sampling with wrong values",
        "temperature and top_k are 0 or more, top_p and min_p are probabilities, and "
        "repetition_penalty is above 0.",
        "smelt generate model.onnx --ids 1,2,3 --temperature 0.8 --top-k 40 --top-p 0.95",
    ),
    "E803": ErrorCode(
        "no prompt",
        "A prompt has one token or more. Tokens are integers from 0 to the size of the decoder's "
        "vocabulary; a tokenizer makes them of a text.",
        "smelt generate model.onnx --ids 1,2,3",
    ),
    "E804": ErrorCode(
        "an input that cannot be given",
        "Arrays are given by the names of inputs that are neither tokens nor mask, positions or "
        "pasts that grow. The array of a recurrent state is its first value.",
        "smelt inspect decoder_model.onnx",
    ),
    "E805": ErrorCode(
        "weights that do not fit the decoder",
        "Each tensor of the file replaces the weight of the model with the same name and shape. "
        "No tensor and no weight may be left. An export must keep the names of its "
        "parameters. docs/language-models.md lists the architectures whose names in GGUF files "
        "smelt translates.",
        "torch.onnx.export(model, args, 'model.onnx', dynamo=True)",
    ),
    "E806": ErrorCode(
        "no room for so many tokens",
        "A decoder with caches of a fixed size, or with a table of positions, reads that many "
        "tokens: the prompt and all new tokens but the last.",
        "smelt generate model.onnx --ids 1,2,3 --tokens 16",
    ),
    "E807": ErrorCode(
        "a compiled decoder that cannot be run or written",
        "`smelt generate MODEL -o FOLDER` writes machine code for the CPU and the version of smelt "
        "that compiled it. The folder runs with the same CPU, version, inputs and threads, "
        "and as long as its files are whole. A decoder can be written if its steps are compiled as "
        "a whole, to a folder that is new, empty, or of an earlier decoder.",
        "smelt generate model.onnx -o decoder",
    ),
    "E808": ErrorCode(
        "a decoder that cannot be written as C or WebAssembly",
        "`smelt compile --decode` writes a decoder that is one model: its inputs are tokens, a "
        "mask, positions and pasts, for one token or any number of them a call. "
        "Encoder-decoder models and other targets are not supported; `smelt generate` runs them.",
        "smelt compile model.onnx --target c --decode -o decoder",
    ),
}
