"""``smelt bench out/ --kernels``: time each kernel of a compiled folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt.cli.command import note, print_json
from smelt.cli.layout import printable, table
from smelt.errors import UsageError

if TYPE_CHECKING:
    from smelt.cli.input_values import InputValues

HEAD = ("step", "kernel", "node", "us", "share", "MMAC", "KB", "GMAC/s")


def bench_kernels(
    folder: str, values: InputValues, *, rounds: int, seconds: float, as_json: bool
) -> None:
    """Time each kernel of the C library in ``folder`` and print them, slowest first.

    The library must be compiled with the option ``profile``. The seconds are also written to the
    report.json of the folder. Raises UsageError E637 if ``folder`` is no folder.
    """
    from smelt.candidate import candidate
    from smelt.runtime.named_inputs import MadeUp, choose_inputs
    from smelt.targets.c.measure import measure
    from smelt.targets.c.report_file import read
    from smelt.targets.c.saved import open_folder

    if not Path(folder).is_dir():
        raise UsageError(
            "E637",
            f"{folder!r} is not a folder",
            fix="smelt compile MODEL --target c --option profile=true -o out/",
            why="--kernels times the kernels of a folder that target c wrote",
        )
    read(Path(folder))
    opened = candidate(folder, folder)
    assert opened.interface is not None  # a compiled folder declares its inputs
    input_arrays = values.by_name(opened.interface)
    chosen = choose_inputs(
        opened.interface, input_arrays, opened.make_inputs, {}, MadeUp("random", 0)
    )
    saved = open_folder(Path(folder))
    assert saved is not None  # read() above would have raised otherwise
    library: Any = saved.load()
    report = measure(Path(folder), library, chosen.values, rounds=rounds, seconds=seconds)
    if as_json:
        print_json(report)
        return
    kernels = sorted(report["kernels"], key=lambda kernel: -kernel["seconds"])
    print(table([_row(kernel, report["seconds"]) for kernel in kernels], HEAD))
    note(f"{1e3 * report['seconds']:.4g} ms in kernels; the seconds are in {folder}/report.json")


def _row(kernel: Mapping[str, Any], total: float) -> tuple[Any, ...]:
    """Return a row of the table: step, kernel, node, microseconds, share, MMAC, KB, GMAC/s."""
    seconds = kernel["seconds"]
    rate = f"{kernel['macs'] / seconds / 1e9:.3g}" if kernel["macs"] and seconds else ""
    return (
        kernel["step"],
        kernel["function"] or "",
        printable(kernel["origin"]),
        f"{1e6 * seconds:.4g}",
        f"{100 * seconds / total:.0f}%" if total else "",
        f"{kernel['macs'] / 1e6:.3g}" if kernel["macs"] else "",
        f"{(kernel['bytes_read'] + kernel['bytes_written']) / 1e3:.4g}",
        rate,
    )
