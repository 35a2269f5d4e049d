"""Models of tests that are compiled as one text behave as those compiled apart."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from c_library import STRICT, one_text

from smelt.runtime.c_library import build


def model(number: int) -> bytes:
    """A model with names and macros as other models have them."""
    return f"""
#ifndef SUMS
#define SUMS 8
#endif
#define WIDTH {number}
typedef int count;
static const count table[1] = {{WIDTH}};
static count steps(void) {{ return table[0] * SUMS; }}
int m{number}_run(void);
int m{number}_run(void) {{ return steps(); }}
""".encode()


@pytest.mark.parametrize(("flags", "sums"), [(STRICT, 8), ((*STRICT, "-DSUMS=1"), 1)], ids=str)
def test_each_model_has_its_own_names_and_the_macros_of_the_flags(flags, sums, tmp_path: Path):
    files = one_text({f"m{number}.c": model(number) for number in (2, 3)}, flags)
    assert [name for name in files if name.endswith(".c")] == ["models.c"]
    library = ctypes.CDLL(str(build(files, tmp_path, flags)))
    assert (library.m2_run(), library.m3_run()) == (2 * sums, 3 * sums)
