"""The built-in failure patterns, a family a file, in the order in which users see them."""

FAMILIES = ("nics", "switches", "flap", "correlated", "rolling", "random_nics", "mttf", "log")
"""Modules of this package; every `Pattern` that one defines is built in."""
