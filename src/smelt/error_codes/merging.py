"""Errors in merging models."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E665": ErrorCode(
        "no pair of decoders",
        "The decoder with past reads the inputs of the other, and further inputs: past keys and "
        "values.",
        "smelt merge decoder_model.onnx decoder_with_past_model.onnx -o merged.onnx",
    ),
    "E666": ErrorCode(
        "an input or output that differs between the models",
        "Inputs and outputs of one name have one element type and one rank, and the first step "
        "computes all outputs.",
        "export both models from the same network",
    ),
    "E667": ErrorCode(
        "two versions of an operator set",
        "A file imports one version of each operator set. smelt can "
        "raise the ONNX opset of one model to that of the other, but no other operator set.",
        "export both models with the same versions",
    ),
    "E668": ErrorCode(
        "two functions of one name",
        "Both models define a function of this name, with different bodies.",
        "`smelt optimize` inlines functions: run it on both models first",
    ),
    "E669": ErrorCode(
        "a name that cannot be used",
        "Two inputs or two outputs of the merged model would have one name, or two files of a "
        "folder. Or the name given for a file is a path.",
        "smelt merge A B --condition use_past -o merged.onnx",
    ),
    "E672": ErrorCode(
        "an output of fixed size that only one model returns",
        "Both branches of the merged model return the same outputs. The branch of the model with "
        "past returns an empty tensor for an output that this model lacks, but a tensor of fixed "
        "size cannot be empty.",
        "smelt merge A B --repeat-caches -o merged.onnx",
    ),
    "E673": ErrorCode(
        "a wrong connection",
        "A connection names an output of the first model and an input of the second, each once.",
        "smelt merge A B --connect last_hidden_state=encoder_hidden_states -o chain.onnx",
    ),
    "E674": ErrorCode(
        "wrong number of models",
        "A merge takes two models; with --share, two or more.",
        "smelt merge decoder_model.onnx decoder_with_past_model.onnx -o merged.onnx",
    ),
}
