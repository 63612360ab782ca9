"""The options of `coll` that have to make sense: sizes, counts, data types. Errors are one line."""

from typing import TYPE_CHECKING

from r2cc_simai.errors import InputError
from r2cc_simai.units import parse_size

if TYPE_CHECKING:
    from r2cc_simai.collectives.operations import Operation
    from r2cc_simai.engine.run import Backend

LARGEST = 2**50  # bytes of a buffer
MOST_SIZES = 1000
MOST_ITERATIONS = 100_000

ELEMENT_BYTES = {
    **dict.fromkeys(("int8", "char", "uint8", "fp8_e4m3", "fp8_e5m2"), 1),
    **dict.fromkeys(("half", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "int", "uint32", "float", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "double", "float64"), 8),
}
REDOPS = ("sum", "prod", "min", "max", "avg")


def element_bytes(datatype: str) -> int:
    """Bytes of one element of an NCCL data type.

    Raises:
        InputError: no such type.
    """
    if datatype not in ELEMENT_BYTES:
        raise InputError(f"-d {datatype}: no NCCL data type (allowed: {', '.join(ELEMENT_BYTES)})")
    return ELEMENT_BYTES[datatype]


def check_redop(op: str) -> None:
    """Refuses a reduction that NCCL does not have.

    Raises:
        InputError: no such reduction.
    """
    if op not in REDOPS:
        raise InputError(f"-o {op}: no NCCL reduction (allowed: {', '.join(REDOPS)})")


def check_iterations(iterations: int, warmup: int) -> None:
    """Refuses a job without iterations, and one that would never end.

    Raises:
        InputError: a count is out of range.
    """
    if not 1 <= iterations <= MOST_ITERATIONS:
        raise InputError(f"-n {iterations}: write a number of iterations from 1 to {MOST_ITERATIONS}")
    if warmup < 0:
        raise InputError(f"-w {warmup}: the number of warm-up iterations must not be negative")


def backend(name: str) -> "Backend":
    """The backend of a name.

    Raises:
        InputError: no such backend.
    """
    from r2cc_simai.engine.run import Backend

    known = [one.value for one in Backend]
    if name not in known:
        raise InputError(f"--backend {name}: unknown (allowed: {', '.join(known)})")
    return Backend(name)


def operation(name: str) -> "Operation":
    """The collective of a name, as this project or nccl-tests spells it.

    Raises:
        InputError: no such collective.
    """
    from r2cc_simai.collectives.operations import operation as find

    try:
        return find(name)
    except InputError as error:
        raise InputError(f"--collective {error}") from None


def check_root(root: int, ranks: int) -> None:
    """Refuses a root that is no rank.

    Raises:
        InputError: no such rank.
    """
    if not 0 <= root < ranks:
        raise InputError(f"-r {root}: no such rank (0 to {ranks - 1})")


def sizes(minimum: str, maximum: str | None, factor: float, element: int) -> list[int]:
    """Buffer sizes in bytes from `minimum` to `maximum`, each `factor` times the one before; one element follows 0.

    Raises:
        InputError: a size is none, the range is empty or too long, or the factor does not lead upwards.
    """
    first = size("-b", minimum)
    last = first if maximum is None else size("-e", maximum)
    if first > last:
        raise InputError(f"-b {minimum} -e {maximum}: the smallest size is above the largest")
    if not 1 < factor < float("inf"):
        raise InputError(f"-f {factor:g}: the factor from one size to the next must be above 1")
    found = [first]
    while (following := max(found[-1] + 1, int(found[-1] * factor)) if found[-1] else element) <= last:
        found.append(following)
        if len(found) > MOST_SIZES:
            raise InputError(f"-f {factor:g}: more than {MOST_SIZES} sizes from {minimum} to {maximum}")
    return found


def size(option: str, text: str) -> int:
    """Bytes that an option gives.

    Raises:
        InputError: it is no size, or too large.
    """
    try:
        found = parse_size(text)
    except InputError as error:
        raise InputError(f"{option} {error}") from None
    if found > LARGEST:
        raise InputError(f"{option} {text}: larger than 1024 TiB")
    return found
