"""The wire format, against bytes computed by hand and against itself."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.chakra.wire import (
    MessageColumn,
    WireError,
    bytes_field,
    read_fields,
    read_list,
    read_messages,
    read_varint,
    varint,
    varint_field,
    varint_lengths,
)

NUMBERS = st.integers(0, 2**62)


def read_all(data):
    return [list(read_fields(data, at, end)) for at, end in read_messages(data)]


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "80 01"),
        (150, "96 01"),  # the example of protobuf.dev
        (300, "ac 02"),
        (2**31 - 1, "ff ff ff ff 07"),
        (2**64 - 1, "ff ff ff ff ff ff ff ff ff 01"),
    ],
)
def test_a_varint_holds_seven_bits_a_byte_the_lowest_first(value, raw):
    assert varint(value) == bytes.fromhex(raw)
    assert read_varint(bytes.fromhex(raw), 0, len(bytes.fromhex(raw))) == (value, len(bytes.fromhex(raw)))


def test_fields_as_protobuf_writes_them():
    """Field 1 with 150 is 08 96 01; field 2 with "testing" is 12 07 74 65 73 74 69 6e 67 (protobuf.dev)."""
    assert varint_field(1, 150) == bytes.fromhex("08 96 01")
    assert bytes_field(2, b"testing") == bytes.fromhex("12 07 74 65 73 74 69 6e 67")


def test_a_column_of_messages():
    """Three messages {1: n, 4: [...]} of n = 1, 150, 2 with lists [], [3, 270, 86942], [7], each behind its length.

    The packed list of the second is protobuf.dev's example: 22 06 03 8e 02 9e a7 05 for field 4.
    """
    column = MessageColumn(3)
    column.constant(b"\x08")
    column.varint(np.array([1, 150, 2]))
    column.packed(4, np.array([0, 3, 1]), np.array([3, 270, 86942, 7]))
    expected = "02 08 01" + "0b 08 96 01 22 06 03 8e 02 9e a7 05" + "05 08 02 22 01 07"
    assert column.to_bytes() == bytes.fromhex(expected)


@given(st.lists(NUMBERS, min_size=1))
def test_lengths_are_those_of_the_bytes(values):
    assert varint_lengths(np.array(values)).tolist() == [len(varint(value)) for value in values]


@given(st.lists(st.tuples(NUMBERS, st.lists(NUMBERS, max_size=4), st.booleans()), min_size=1, max_size=8))
def test_what_a_column_writes_is_what_single_fields_write_and_what_is_read(rows):
    column = MessageColumn(len(rows))
    column.constant(varint(1 << 3))
    column.varint(np.array([number for number, _, _ in rows]))
    column.packed(300, np.array([len(many) for _, many, _ in rows]), np.array([v for _, m, _ in rows for v in m], int))
    marked = np.flatnonzero([mark for _, _, mark in rows])
    column.constant(bytes_field(2, b"mark"), marked)
    written = column.to_bytes()
    single = b""
    for number, many, mark in rows:
        message = varint_field(1, number)
        message += bytes_field(300, b"".join(map(varint, many))) if many else b""
        message += bytes_field(2, b"mark") if mark else b""
        single += varint(len(message)) + message
    assert written == single
    for (at, end), (number, many, mark) in zip(read_messages(written), rows, strict=True):
        fields = {key: (kind, a, b) for key, kind, a, b in read_fields(written, at, end)}
        assert fields[1][1] == number
        assert (2 in fields) == mark
        assert list(read_list(written, *fields[300]) if many else []) == many


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ("05 08 01", "it ends 3 bytes before the end of a message"),
        ("80", "it ends within a number"),
        ("02 08 96", "it ends within a number"),
        ("03 12 07 74", "a field runs past the end of its message"),
        ("01 0b", "wire type 3"),
        ("ff ff ff ff ff ff ff ff ff ff 01", "a number of more than ten bytes"),
    ],
)
def test_what_is_no_message_is_refused(raw, complaint):
    with pytest.raises(WireError, match=complaint):
        read_all(bytes.fromhex(raw))


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(WireError):
        read_all(data)
