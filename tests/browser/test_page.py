"""The page as a reader meets it: complete, quiet, legible at every width, in both themes, and without JavaScript."""

from pathlib import Path

import pytest

SIZES = [(1280, 900), (390, 844)]
SCHEMES = ["light", "dark"]
LEAST_CONTRAST = 4.5

BOXES = """
() => [...document.querySelectorAll('svg')].map((svg) => {
  const box = svg.getBoundingClientRect();
  const own = svg.viewBox.baseVal;
  const drawn = svg.getBBox();
  return {
    label: svg.getAttribute('aria-label'), width: box.width, height: box.height,
    parts: svg.querySelectorAll('path, text, use, rect, circle').length,
    inside: drawn.width > 0.3 * own.width && drawn.height > 0.3 * own.height
      && drawn.x < own.width && drawn.y < own.height && drawn.x + drawn.width > 0 && drawn.y + drawn.height > 0,
  };
})
"""

WIDER = """
() => {
  const wide = document.documentElement.clientWidth;
  const scrolls = (element) => element.closest('.wide, .facets') !== null;
  return [...document.body.querySelectorAll('*')]
    .filter((e) => !scrolls(e) && e.getBoundingClientRect().right > wide + 0.5 && e.getClientRects().length)
    .map((e) => e.tagName + '.' + e.className);
}
"""

CONTRASTS = """
() => {
  const parsed = (text) => {
    const parts = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith('color(') ? [...parts.slice(0, 3).map((v) => 255 * v), parts[3] ?? 1]
                                     : [...parts.slice(0, 3), parts[3] ?? 1];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = (color) => {
    const [r, g, b] = color.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(parsed(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
    if (element.closest('script, style, title, metadata, defs')) continue;
    const style = getComputedStyle(element);
    const back = background(element);
    const paint = element.closest('svg') ? style.fill : style.color;
    const front = over(parsed(paint), back);
    const [high, low] = [light(front), light(back)].sort((a, b) => b - a);
    const key = `${paint} on ${back.slice(0, 3).map(Math.round)}`;
    if (!found.has(key)) found.set(key, [(high + 0.05) / (low + 0.05), walker.currentNode.textContent.trim()]);
  }
  return [...found].map(([key, [ratio, text]]) => [key, ratio, text]);
}
"""


def test_nothing_is_said_and_nothing_is_loaded(open_report, report: Path) -> None:
    """No message in the console, no error, and one request: the file itself."""
    seen = open_report()
    assert seen.messages == []
    assert seen.requests == [report.as_uri()]


def test_every_plot_is_drawn(open_report) -> None:
    """Each plot has an accessible name, an area, and content that fills it."""
    plots = open_report().page.evaluate(BOXES)
    assert len(plots) >= 5
    for plot in plots:
        assert plot["label"]
        assert plot["width"] >= 300
        assert plot["height"] >= 60
        assert plot["parts"] >= 5
        assert plot["inside"], plot["label"]


@pytest.mark.parametrize("size", SIZES)
def test_the_page_does_not_scroll_sideways(open_report, size: tuple[int, int]) -> None:
    """Tables and plots scroll in boxes of their own, which lie within the window."""
    page = open_report(size).page
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert page.evaluate(WIDER) == []
    assert page.evaluate("[...document.querySelectorAll('.wide')].some((box) => box.scrollWidth > box.clientWidth)")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_stands_out_from_its_background(open_report, size: tuple[int, int], scheme: str) -> None:
    """WCAG 2: (L1 + 0.05) / (L2 + 0.05) >= 4.5 with the relative luminances L of text and background."""
    page = open_report(size, scheme).page
    if page.locator("#page-choices").is_visible():
        page.click("#page-choices")
        page.click(".chip >> nth=0")
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) >= 5
    assert [item for item in contrasts if item[1] < LEAST_CONTRAST] == []


def test_the_page_follows_the_theme(open_report) -> None:
    """A light page is light and a dark one dark; plots take their colours from the page."""
    lights = {}
    for scheme in SCHEMES:
        page = open_report(scheme=scheme).page
        body = page.evaluate("getComputedStyle(document.body).backgroundColor")
        ink = page.evaluate("getComputedStyle(document.querySelector('svg text')).fill")
        lights[scheme] = [sum(map(int, color[4:-1].split(","))) / 3 for color in (body, ink)]
    assert lights["light"][0] > 200
    assert lights["light"][1] < 130
    assert lights["dark"][0] < 60
    assert lights["dark"][1] > 130


def test_what_a_finger_touches_is_large_enough_on_a_phone(open_report) -> None:
    """Buttons and boxes for text are at least 44 px high, links of the contents 40."""
    page = open_report((390, 844)).page
    page.tap("summary")
    page.tap("#page-choices")
    heights = page.evaluate(
        "[...document.querySelectorAll('button, input')].filter((e) => e.checkVisibility())"
        ".map((e) => [e.textContent, e.getBoundingClientRect().height])"
    )
    links = page.evaluate("[...document.querySelectorAll('nav a')].map((e) => e.getBoundingClientRect().height)")
    assert [item for item in heights if item[1] < 44] == []
    assert min(links) >= 40


def test_contents_stay_in_sight_and_lead_to_their_sections(open_report) -> None:
    """The contents list stays at hand far down the page, and a click brings the section into view."""
    page = open_report().page
    page.locator("nav a").last.click()
    page.wait_for_function("window.scrollY > 1000")
    assert page.locator("nav a").last.is_visible()
    assert page.evaluate("document.querySelector('nav').getBoundingClientRect().top") >= 0
    slug = page.locator("nav a").last.get_attribute("href")
    page.wait_for_function(
        "(slug) => { const top = document.querySelector(slug).getBoundingClientRect().top;"
        " return top >= 0 && top < innerHeight; }",
        arg=slug,
    )


def test_all_of_it_is_there_without_javascript(open_report) -> None:
    """No control that does nothing, and every row of every table in sight."""
    page = open_report(javascript=False).page
    assert page.locator("button:visible, input:visible").count() == 0
    assert page.locator("tbody tr").count() == page.locator("tbody tr:visible").count() > 50
    assert page.locator("nav a:visible").count() == page.locator("main section").count()


def test_print_shows_every_row(open_report) -> None:
    """On paper long tables are not folded, and there are no controls."""
    page = open_report().page
    assert page.locator("tbody tr:visible").count() < page.locator("tbody tr").count()
    page.emulate_media(media="print")
    assert page.locator("tbody tr:visible").count() == page.locator("tbody tr").count()
    assert page.locator(".filters:visible, .more:visible, nav:visible").count() == 0


def test_the_report_says_what_it_should(open_report) -> None:
    """The sections of the run: what differs, failed cases, gaps to the bound, bytes per NIC, timelines to open."""
    page = open_report().page
    slugs = page.evaluate("[...document.querySelectorAll('main section')].map((s) => s.id)")
    expected = ["overview", "against", "failed-cases", "overheads", "accuracy", "figure7", "bound-gap", "nic-bytes"]
    assert {*expected, "timelines", "clusters", "scenario-small-job", "reading"} <= set(slugs)
    assert page.locator("#timelines a").get_attribute("href") == "timelines/cut%20in%20the%20middle.json"
    assert "server1" in page.locator("#failed-cases td.bad").inner_text()
