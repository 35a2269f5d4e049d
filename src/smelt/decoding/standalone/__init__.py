"""A decoder as files that need no smelt: its two programs, its loop and its weights.

prompt   up to ``PROMPT_TOKENS`` tokens a call ─┐
step     one token a call ──────────────────────┴─> one set of weights, one memory of caches
loop     feed the prompt, choose a token, feed the token, ...
"""

from __future__ import annotations
