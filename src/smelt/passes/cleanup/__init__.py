"""Clean up: dead nodes, equal constants, names, node order. No pass here changes a result."""
