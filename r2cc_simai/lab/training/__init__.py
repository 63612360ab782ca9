"""Training through a failure: a small language model, data-parallel over the ranks of a lab."""
