"""Docstrings on the site: single backticks are code, and nothing else is read as markup."""

import pytest
from docs_docstrings import as_rst


@pytest.mark.parametrize(
    ("line", "rst"),
    [
        ("The cluster `name`, or ``both``.", "The cluster ``name``, or ``both``."),
        ("T = 2*(p - 1)*D, |x|, word_ and some_word", r"T = 2\*(p - 1)\*D, \|x\|, word\_ and some_word"),
        ("- a list of `x`", "- a list of ``x``"),
        ("Raises:", "Raises:"),
        ("a lone ` backtick", r"a lone \` backtick"),
    ],
)
def test_a_line(line: str, rst: str) -> None:
    assert as_rst([line]) == [rst]


def test_an_indented_block_stays_as_it_is() -> None:
    assert as_rst(["Sizes::", "", "    a * b_", "", "then `x`"]) == ["Sizes::", "", "    a * b_", "", "then ``x``"]
    assert as_rst(["Sizes:", "", "    a * b_"]) == ["Sizes:", "", "::", "", "    a * b_"]


def test_the_errors_of_a_function_keep_their_form() -> None:
    lines = ["What it does.", "", "Raises:", "    InputError: no `x`, or", "        another."]
    assert as_rst(lines) == ["What it does.", "", "Raises:", "    InputError: no ``x``, or", "        another."]
