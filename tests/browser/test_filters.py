"""Filters of the page: words, and choices of strategy, cluster, scenario and backend, for all tables at once."""

from typing import Any


def rows(page: Any) -> int:
    """Return how many rows of tables are not filtered out; folded ones count."""
    return int(page.evaluate("document.querySelectorAll('.table:not(.out) tbody tr:not(.out)').length"))


def test_words_hide_rows_without_them_and_reset_restores(open_report) -> None:
    """Each word has to stand in a row; capitals do not matter. Reset brings everything back."""
    page = open_report().page
    total = rows(page)
    page.fill("#page-words", "BALANCE flow")
    texts = page.evaluate(
        "[...document.querySelectorAll('.table:not(.out) tbody tr:not(.out)')].map((r) => r.textContent.toLowerCase())"
    )
    assert 0 < len(texts) < total
    assert all("balance" in text and "flow" in text for text in texts)
    assert page.inner_text("#page-state") == f"{len(texts)} of {total} table rows"
    page.click("#page-reset")
    assert rows(page) == total
    assert page.inner_text("#page-state") == ""
    assert not page.is_visible("#page-reset")


def test_words_that_nothing_has_empty_the_sections(open_report) -> None:
    """A section without a row left shows its heading alone, and the contents mark it."""
    page = open_report().page
    page.fill("#page-words", "no row has this")
    assert rows(page) == 0
    assert page.is_visible("#accuracy h2")
    assert page.locator("#accuracy > :visible").count() == 1
    assert page.locator("nav a.away").count() > 5
    page.fill("#page-words", "")
    assert page.locator("nav a.away").count() == 0
    assert page.is_visible("#accuracy table")


def choose(page: Any, facet: str, *values: str) -> None:
    if not page.is_visible("#page-facets"):
        page.click("#page-choices")
    for value in values:
        page.click(f"fieldset[data-facet='{facet}'] .chip[data-value='{value}']")


def test_a_choice_of_strategies_hides_rows_and_columns_of_the_others(open_report) -> None:
    """Options of a strategy do not matter: `R2CC-AllReduce k=128` is R2CC-AllReduce."""
    page = open_report().page
    choose(page, "strategy", "Balance", "R2CC-AllReduce")
    titles = page.locator("#overheads th:visible").all_inner_texts()
    assert [title.split("\n")[0].strip(" ↕") for title in titles] == ["scenario", "Balance", "R2CC-AllReduce"]
    gaps = page.locator("#bound-gap tbody tr:visible td:first-child").all_inner_texts()
    assert gaps
    assert {gap.split()[0] for gap in gaps} == {"Balance", "R2CC-AllReduce"}
    choose(page, "strategy", "Balance")
    gaps = page.locator("#bound-gap tbody tr:visible td:first-child").all_inner_texts()
    assert {gap.split()[0] for gap in gaps} == {"R2CC-AllReduce"}


def test_a_choice_of_a_scenario_leaves_its_sections(open_report) -> None:
    """Sections on other scenarios are empty; tables over all scenarios keep the rows of the chosen one."""
    page = open_report().page
    choose(page, "scenario", "figure7")
    assert page.is_visible("#figure7 table >> nth=0")
    assert page.locator("#scenario-small-job > :visible").count() == 1
    assert page.locator("#overheads tbody tr:visible td:first-child").count() == 1
    assert page.locator("#overheads tbody tr:visible td:first-child").inner_text().startswith("figure7")


def test_choices_of_several_facets_and_words_apply_together(open_report) -> None:
    """Values of one facet are alternatives, facets and words are conditions."""
    page = open_report().page
    total = rows(page)
    choose(page, "backend", "flow")
    by_backend = rows(page)
    choose(page, "cluster", "uniformx3", "uniformx4")
    both = rows(page)
    page.fill("#page-words", "optcc")
    assert 0 < rows(page) < both < by_backend < total
    page.click("#page-reset")
    assert rows(page) == total
    assert page.locator(".chip[aria-pressed='true']").count() == 0


def test_a_long_table_has_a_filter_of_its_own(open_report) -> None:
    """It filters that table alone, and an empty result leaves the box to type in."""
    page = open_report().page
    total = rows(page)
    box = page.locator("#r7525-healthy .table").filter(has=page.locator(".more")).first
    own = box.locator("tbody tr").count()
    box.locator("input").fill("gib")
    left = box.locator("tbody tr:not(.out)").count()
    assert 0 < left < own
    assert rows(page) == total - own + left
    assert not box.locator(".more").is_visible() or left > 15
    box.locator("input").fill("nothing like this")
    assert box.locator("tbody tr:visible").count() == 0
    assert box.locator("input").is_visible()
    box.locator("input").fill("")
    assert rows(page) == total


def test_the_keyboard_chooses(open_report) -> None:
    """Filters are reached by Tab and pressed by Enter; a chip says whether it is chosen."""
    page = open_report().page
    page.focus("#page-words")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.get_attribute("#page-choices", "aria-expanded") == "true"
    page.locator(".chip").first.focus()
    page.keyboard.press("Space")
    assert page.locator(".chip").first.get_attribute("aria-pressed") == "true"
    assert page.is_visible("#page-reset")
