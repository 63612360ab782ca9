"""Tables of the page: sorting by a click on a heading, and folding of long ones."""

import re
from fractions import Fraction

import pytest

DASH = "–"
FOLD = 15

CLICK_ALL = """
() => [...document.querySelectorAll('.table')].flatMap((box) => {
  const table = box.querySelector('table');
  const read = (i) => [...table.tBodies[0].rows].map((row) => row.cells[i].firstChild?.textContent ?? '');
  return [...table.tHead.rows[0].cells].map((head, i) => {
    const button = head.querySelector('button');
    if (!button) return null;
    const result = {name: head.textContent, states: [], orders: [read(i)], wholes: []};
    result.wholes.push([...table.tBodies[0].rows].map((row) => row.textContent));
    for (let click = 0; click < 3; click++) {
      button.click();
      result.states.push(head.getAttribute('aria-sort'));
      result.orders.push(read(i));
      result.wholes.push([...table.tBodies[0].rows].map((row) => row.textContent));
    }
    return result;
  });
}).filter((result) => result !== null)
"""

UNITS = {
    "": 1.0,
    "%": 1.0,
    "points": 1.0,
    "/s": 1.0,
    "s": 1.0,
    "ms": 1e-3,
    "µs": 1e-6,
    "min": 60.0,
    "h": 3600.0,
    **{unit: 1024.0**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB"))},
    **{unit: 1000.0**power for power, unit in enumerate(("B/s", "kB/s", "MB/s", "GB/s", "TB/s"))},
}


def number(text: str) -> float | None:
    """Return the value of a cell in its base unit; None where it is not a number."""
    if re.fullmatch(r"\d+/\d+", text):
        return float(Fraction(text))
    plain = text.replace(",", "").replace("−", "-").lstrip("±+")
    found = re.fullmatch(r"(-?\d*\.?\d+)\s*(\S*)", plain)
    if found is None:
        return None
    if found[2] == "×":
        return 100 * (float(found[1]) - 1)
    return float(found[1]) * UNITS.get(found[2], 1.0)


def natural(text: str) -> list[tuple[int, float, str]]:
    parts = re.split(r"(\d+)", text.lower())
    return [(0, float(part), "") if i % 2 else (1, 0.0, part) for i, part in enumerate(parts)]


def expected(cells: list[str], descending: bool) -> list[str]:
    """Return the cells as Python sorts them: numbers by value, text in natural order, what is empty last."""
    full = [cell for cell in cells if cell.strip() not in ("", DASH)]
    empty = [cell for cell in cells if cell.strip() in ("", DASH)]
    numbers = [number(cell.strip()) for cell in full]
    key = natural if None in numbers else number
    return [*sorted(full, key=key, reverse=descending), *empty]  # type: ignore[arg-type]


def same_order(shown: list[str], wanted: list[str]) -> bool:
    """Whether two orders agree but for cells that are equal by the key."""
    keys = [number(cell.strip()) for cell in wanted if cell.strip() not in ("", DASH)]
    key = (lambda cell: natural(cell)) if None in keys else (lambda cell: number(cell.strip()))
    return [key(cell) for cell in shown] == [key(cell) for cell in wanted]


def test_a_click_sorts_and_a_second_one_turns_it_round(open_report) -> None:
    """Every column of every table: ascending, descending, then as it was, which `aria-sort` says."""
    columns = open_report().page.evaluate(CLICK_ALL)
    assert len(columns) > 50
    numeric = 0
    for column in columns:
        assert column["states"] == ["ascending", "descending", None]
        before, up, down, after = column["orders"]
        assert same_order(up, expected(before, descending=False)), column["name"]
        assert same_order(down, expected(before, descending=True)), column["name"]
        assert after == before
        assert all(sorted(whole) == sorted(column["wholes"][0]) for whole in column["wholes"])
        numeric += None not in [number(cell.strip()) for cell in before]
    assert 20 < numeric < len(columns)


@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
def test_a_heading_can_be_clicked(open_report, size: tuple[int, int]) -> None:
    """A real click on a heading, of a numeric column and of one of text."""
    page = open_report(size).page
    table = page.locator("#accuracy table")
    for title in ("compared", "backend"):
        head = table.locator("th", has_text=title)
        before = table.locator("tbody tr").all_text_contents()
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "ascending"
        assert sorted(table.locator("tbody tr").all_text_contents()) == sorted(before)
    assert table.locator("th[aria-sort]").count() == 1


def test_the_keyboard_sorts(open_report) -> None:
    """Headings hold buttons that take the focus; Enter and the space bar press them."""
    page = open_report().page
    head = page.locator("#accuracy th").first
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('th')?.cellIndex") == 1


def test_long_tables_are_folded_and_open(open_report) -> None:
    """Of a table of more than 15 rows the first 15 show, and a button shows all."""
    page = open_report().page
    box = page.locator("#r7525-healthy .table").filter(has=page.locator(".more")).first
    rows = box.locator("tbody tr")
    total = rows.count()
    assert total > FOLD
    visible = box.locator("tbody tr:visible")
    assert visible.count() == FOLD
    more = box.locator(".more")
    assert more.inner_text() == f"Show all {total}"
    more.click()
    assert visible.count() == total
    assert more.get_attribute("aria-expanded") == "true"
    more.click()
    assert visible.count() == FOLD


def test_sorting_brings_hidden_rows_to_the_top(open_report) -> None:
    """A folded table shows the first 15 rows of its order, not the rows that were first."""
    page = open_report().page
    box = page.locator("#r7525-healthy .table").filter(has=page.locator(".more")).first
    last = box.locator("tbody tr").last.locator("td").first.inner_text()
    assert last not in box.locator("tbody tr:visible td:first-child").all_inner_texts()
    for _ in range(2):
        box.locator("th button").first.click()
    assert box.locator("tbody tr:visible td:first-child").first.inner_text() == last


def test_boxes_that_scroll_can_be_reached(open_report) -> None:
    """A box that scrolls sideways takes the focus and has a name, so that the arrow keys move it."""
    page = open_report((390, 844)).page
    boxes = page.evaluate(
        "[...document.querySelectorAll('.wide')].filter((b) => b.scrollWidth > b.clientWidth)"
        ".map((b) => [b.tabIndex, b.getAttribute('role'), b.getAttribute('aria-label')])"
    )
    assert boxes
    assert all(index == 0 and role == "region" and label for index, role, label in boxes)
