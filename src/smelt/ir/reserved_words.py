"""Reserved words of the languages that targets write; names of values must avoid them."""

from __future__ import annotations

C = frozenset(
    {
        "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char",
        "class", "const", "continue", "default", "delete", "do", "double", "else", "enum",
        "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
        "int", "long", "main", "mutable", "namespace", "new", "not", "operator", "or", "private",
        "protected", "public", "register", "restrict", "return", "short", "signed", "sizeof",
        "static", "struct", "switch", "template", "this", "throw", "true", "try", "typedef",
        "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
        "wchar_t", "while", "xor",
    }
)  # fmt: skip
"""Words of C and C++."""

CORE_ML = frozenset(
    {
        "any", "bf16", "bool", "dict", "false", "fp16", "fp32", "fp64", "func", "int16", "int32",
        "int64", "int8", "list", "program", "state", "string", "tensor", "true", "tuple", "uint16",
        "uint32", "uint64", "uint8",
    }
)  # fmt: skip
"""Words of Core ML's textual model format: types, literals and keywords."""
