"""Function bodies of operators, and loops and branches, for targets with fewer operators.

No pass here is in the default pipeline.
"""
