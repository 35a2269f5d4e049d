"""What no value depends on: dead nodes, equal constants, names, order.

No pass here changes what is computed.
"""
