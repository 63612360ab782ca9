"""The hosts file: `NAME slots=N` as Open MPI writes it, `NAME:N` as MPICH does."""

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.real.hosts import Host, read_hosts, total_slots


def test_both_forms_comments_and_the_order_of_the_file(hosts):
    found = read_hosts(hosts)
    assert found == (Host("node-1", 2), Host("node-2", 2), Host("node-3", 2))
    assert total_slots(found) == 6


BAD = {
    "no slots": ("a slots=2\nb\n", "2: b: slots missing; write 'b slots=N'"),
    "no number": ("a slots=two\n", "1: expected 'NAME slots=N' or 'NAME:N'"),
    "no process": ("a:0\n", "1: a: 0 slots"),
    "an empty count": ("a:\n", "1: expected 'NAME slots=N' or 'NAME:N'"),
    "named twice": ("a:1\na:2\n", "2: a: named twice"),
    "an option as a name": ("--host:2\n", "1: expected"),
    "nothing": ("# none\n", "no host in it"),
}


@pytest.mark.parametrize(("text", "named"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_named_with_its_line(tmp_path, text, named):
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(InputError, match=r"hosts") as error:
        read_hosts(path)
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_hosts(tmp_path / "none")
