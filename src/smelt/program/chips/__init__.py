"""Services for accelerators: tiles, staging through near memories, and layouts of slots."""
