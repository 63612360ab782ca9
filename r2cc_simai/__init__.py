"""What network failures cost LLM training and serving, and which collective saves how much of it."""

__version__ = "0.1.0"
