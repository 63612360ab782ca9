"""The errors a user can cause, and the exit code that each one means.

0 ok, 1 regression or mismatch, 2 bad input, 3 partitioned or unfinished, 4 a component is missing.
The message of each is one line that names the file, the key or the node, and what would be right.
"""


class SimaiError(Exception):
    """Base of every error that ends a command with one line instead of a traceback."""

    exit_code = 1


class MismatchError(SimaiError):
    """A result lies outside its tolerance."""

    exit_code = 1


class InputError(SimaiError):
    """The user's input is wrong."""

    exit_code = 2


class PartitionedError(SimaiError):
    """The failures leave a pair of ranks without a path, or a run did not finish."""

    exit_code = 3


class MissingComponentError(SimaiError):
    """Something that has to be built or installed first is absent."""

    exit_code = 4
