"""Ways to make a model smaller while it still shows something; see ``smelt.check.reduce``."""
