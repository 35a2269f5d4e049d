"""Steps that make a model smaller while a check still holds; see ``smelt.check.reduce``."""
