"""Requirements of attributes of operators on texts, n-grams and random numbers."""

from __future__ import annotations

from smelt.ir.operand_facts.operands import Facts, Operands, at_least, one_of


def _gram_lengths_are_ordered(n: Operands) -> bool:
    """True if ``min_gram_length`` is at most ``max_gram_length``."""
    return n.number("min_gram_length", 1) <= n.number("max_gram_length", 1)


FACTS: Facts = {
    "StringNormalizer": (one_of("case_change_action", "NONE", "NONE", "LOWER", "UPPER"),),
    "TfIdfVectorizer": (
        one_of("mode", "TF", "TF", "IDF", "TFIDF"),
        ("min_gram_length is at most max_gram_length", _gram_lengths_are_ordered),
    ),
    "Multinomial": (
        at_least("sample_size", 1),
        ("dtype is int32 or int64", lambda n: n.number("dtype", 6) in (6, 7)),
    ),
}
