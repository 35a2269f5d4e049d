"""The level below the graph: flat programs over slots, and their plans; see docs/program.md."""
