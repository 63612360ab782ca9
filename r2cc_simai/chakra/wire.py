"""Protocol-buffer wire format: the small part of it that Chakra traces need, for whole columns of messages at once.

A field is a key, number * 8 + wire type, and a value: a varint (type 0; seven bits a byte, the lowest first, the high
bit set on all but the last), or a length and that many bytes (type 2). Source: protobuf.dev, "Encoding".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]
Bytes = NDArray[np.uint8]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10
_ALL = slice(None)
Rows = Int | slice


class WireError(ValueError):
    """The bytes are no protocol buffer, or end too early."""


def varint(value: int) -> bytes:
    """A number from 0 to 2**64 - 1 as a varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def padded_varint(value: int, width: int) -> bytes:
    """A number as a varint of a given number of bytes: high bits of zero are added, that another can take its place.

    Raises:
        ValueError: it needs more bytes.
    """
    raw = bytearray(varint(value))
    if len(raw) > width:
        raise ValueError(f"{value} needs {len(raw)} bytes, not {width}")
    while len(raw) < width:
        raw[-1] |= 0x80
        raw.append(0)
    return bytes(raw)


def varint_field(number: int, value: int) -> bytes:
    """A field that holds a number."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """A field that holds bytes: a string, a message, a packed list."""
    return varint(number << 3 | LENGTH) + varint(len(value)) + value


def varint_lengths(values: Int) -> Int:
    """How many bytes each value takes as a varint; values must not be negative."""
    length = np.ones(len(values), dtype=np.int64)
    for k in range(1, LONGEST_VARINT - 1):
        more = values >= 1 << 7 * k
        if not more.any():
            break
        length += more
    return length


class MessageColumn:
    """Many messages, each preceded by its length, built field by field: every call adds bytes to some of them."""

    def __init__(self, count: int) -> None:
        self._length = np.zeros(count, dtype=np.int64)
        self._parts: list[tuple[Rows, bytes | Int | _Choice, Int | None]] = []
        self._slots: list[int] = []

    def constant(self, raw: bytes, rows: Rows = _ALL) -> None:
        """Adds the same bytes to each of `rows`."""
        self._length[rows] += len(raw)
        self._parts.append((rows, raw, None))

    def slot(self, width: int, rows: Int) -> None:
        """Adds bytes of zero to each of `rows`, to be filled in later: `to_buffer` tells where they are."""
        self._slots.append(len(self._parts))
        self.constant(bytes(width), rows)

    def choice(self, options: Sequence[bytes], which: Int, rows: Rows = _ALL) -> None:
        """Adds options[which[i]] to the i-th of `rows`."""
        size = np.array([len(option) for option in options], dtype=np.int64)
        text = np.frombuffer(b"".join(options), dtype=np.uint8)
        self._length[rows] += size[which]
        self._parts.append((rows, _Choice(text, (np.cumsum(size) - size)[which], size[which]), None))

    def varint(self, values: Int, rows: Rows = _ALL) -> None:
        """Adds a number to each of `rows`."""
        self._length[rows] += varint_lengths(values)
        self._parts.append((rows, values, None))

    def packed(self, number: int, counts: Int, values: Int) -> None:
        """Adds a list field: counts[i] of `values` to message i, in turn; an empty list adds nothing."""
        rows = np.flatnonzero(counts)
        ends = np.cumsum(counts[rows])
        sizes = np.concatenate(([0], np.cumsum(varint_lengths(values))))
        size = sizes[ends] - sizes[ends - counts[rows]]
        self.constant(varint(number << 3 | LENGTH), rows)
        self.varint(size, rows)
        self._length[rows] += size
        self._parts.append((rows, values, counts[rows]))

    def to_bytes(self) -> bytes:
        """All messages, each behind its length."""
        return self.to_buffer()[0].tobytes()

    def to_buffer(self) -> tuple[Bytes, list[Int]]:
        """All messages, each behind its length; and for every `slot`, in turn, where it begins in each of its rows."""
        prefix = varint_lengths(self._length)
        ends = np.cumsum(prefix + self._length)
        cursor = ends - self._length
        out = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
        _put(out, cursor - prefix, self._length)
        slots: list[Int] = []
        for part, (rows, values, counts) in enumerate(self._parts):
            at = cursor[rows]
            if isinstance(values, bytes):
                if part in self._slots:
                    slots.append(at)  # `rows` is an array, so `at` is no view of the cursor
                for k, byte in enumerate(values):
                    out[at + k] = byte
                cursor[rows] += len(values)
            elif isinstance(values, _Choice):
                cursor[rows] += values.put(out, at)
            else:
                cursor[rows] += _put_all(out, at, values, counts)
        return out, slots


@dataclass(frozen=True, eq=False)
class _Choice:
    """Pieces of a text, one a row."""

    text: Bytes
    start: Int
    size: Int

    def put(self, out: Bytes, at: Int) -> Int:
        ramp = np.arange(int(self.size.sum())) - np.repeat(np.cumsum(self.size) - self.size, self.size)
        out[np.repeat(at, self.size) + ramp] = self.text[np.repeat(self.start, self.size) + ramp]
        return self.size


def _put_all(out: Bytes, at: Int, values: Int, counts: Int | None) -> Int:
    """Writes one varint a row, or counts[i] of them to row i; returns how many bytes each row takes."""
    length = varint_lengths(values)
    if counts is None:
        _put(out, at, values)
        return length
    start = np.concatenate(([0], np.cumsum(length)))
    first = np.cumsum(counts) - counts
    _put(out, np.repeat(at - start[first], counts) + start[:-1], values)
    taken: Int = start[first + counts] - start[first]
    return taken


def _put(out: Bytes, at: Int, values: Int) -> None:
    """Writes each value as a varint at its place."""
    rest, place = values, at
    while len(rest):
        more = rest > 0x7F
        out[place] = np.where(more, rest & 0x7F | 0x80, rest)
        place, rest = place[more] + 1, rest[more] >> 7


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The varint at a position, and the position behind it.

    Raises:
        WireError: it runs past `end` or past ten bytes.
    """
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift >= 7 * LONGEST_VARINT:
            raise WireError("a number of more than ten bytes")
    raise WireError("it ends within a number")


def read_messages(data: bytes) -> Iterator[tuple[int, int]]:
    """Start and end of each message of a file in which every one is preceded by its length.

    Raises:
        WireError: the file ends within a message.
    """
    at = 0
    while at < len(data):
        size, start = read_varint(data, at, len(data))
        at = start + size
        if at > len(data):
            raise WireError(f"it ends {at - len(data)} bytes before the end of a message")
        yield start, at


def read_fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message: number, wire type, and a varint's value and 0, or the start and end of other values.

    Raises:
        WireError: the bytes are no message.
    """
    while at < end:
        key = data[at]  # keys and values of one byte, the usual ones, are read on the spot
        if key < 0x80:
            at += 1
        else:
            key, at = read_varint(data, at, end)
        kind = key & 7
        if kind == VARINT:
            value, at = read_varint(data, at, end)
            yield key >> 3, kind, value, 0
            continue
        if kind == LENGTH:
            if at < end and data[at] < 0x80:
                size, at = data[at], at + 1
            else:
                size, at = read_varint(data, at, end)
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
        else:
            raise WireError(f"wire type {kind}")
        if at + size > end:
            raise WireError("a field runs past the end of its message")
        yield key >> 3, kind, at, at + size
        at += size


def read_list(data: bytes, kind: int, a: int, b: int) -> Sequence[int]:
    """The numbers of a repeated field: one, or all of a packed list."""
    if kind == VARINT:
        return (a,)
    values = []
    while a < b:
        value, a = read_varint(data, a, b)
        values.append(value)
    return values
