"""The Python side of the compiled engine."""
