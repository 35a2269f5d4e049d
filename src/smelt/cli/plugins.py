"""``smelt plugins``: list what installed packages add to smelt, and whether it can be imported."""

from __future__ import annotations

from smelt.cli.command import Json, command, note, print_json
from smelt.cli.layout import table


@command
def plugins(as_json: Json = False) -> None:
    """List what other installed packages add to smelt.

    A package can add passes, targets, lowerings, operators and C kernels. Each is imported to
    test that it works, except with --no-plugins.

    Example: smelt plugins
    """
    from smelt.check.plugins import plugins as installed

    listed = installed()
    if as_json:
        print_json({"schema": "smelt.plugins/1", "plugins": [item.to_json() for item in listed]})
        return
    if not listed:
        note("no installed package adds anything to smelt")
        return
    header = ("package", "version", "adds to", "name", "state")
    rows = []
    for item in listed:
        state = " ".join(filter(None, (item.state, item.error, item.place and f"({item.place})")))
        group = item.group.removeprefix("smelt.")
        rows.append((item.package, item.version, group, item.name, state))
    print(table(rows, header))
