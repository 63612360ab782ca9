"""A report as one HTML page that refers to nothing outside itself and follows the reader's theme.

The page is complete without JavaScript; `page.js` adds sorting, filters and folding of long tables.
"""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from r2cc_simai.results.report import facets
from r2cc_simai.results.report.document import Facets, Plot, Section
from r2cc_simai.results.report.palette import DARK

if TYPE_CHECKING:
    from markupsafe import Markup

_HERE = Path(__file__).parent
_FONT = "'DejaVu Sans', sans-serif"
_ID = re.compile(r'(\bid="|href="#|url\(#)')
_CODE = re.compile(r"`([^`]+)`")


def render_html(title: str, sections: Sequence[Section]) -> str:
    """Return the page: a contents list, filters, the sections, plots inlined as SVG."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["spans"] = lambda text: Markup(_CODE.sub(r"<code>\1</code>", escape(text)))
    environment.filters["inline"] = lambda plot: Markup(inline_svg(plot))
    environment.filters["kind"] = lambda block: type(block).__name__
    environment.filters["data"] = _data
    environment.filters["facet_value"] = lambda text, facet: facets.value(facet, text)
    return environment.get_template("page.html.j2").render(
        title=title,
        sections=sections,
        facet_names=facets.FACETS,
        choices=facets.choices(sections),
        style=Markup(_theme() + _file("page.css")),
        script=Markup(_file("page.js")),
    )


def inline_svg(plot: Plot) -> str:
    """Return the plot's SVG element, ready to stand in a page beside others.

    Its ids carry the plot's name, its colours are the page's variables, its text is in the page's font.
    """
    svg = plot.svg[plot.svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = _ID.sub(rf"\1{plot.slug}-", svg)
    for color in DARK:
        svg = svg.replace(color, f"var({_variable(color)})")
    svg = svg.replace(_FONT, "var(--font)")
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(plot.caption)}"', 1)


def _data(values: Facets) -> "Markup":
    """Return facets as attributes: `data-cluster="h100|h100x4"`."""
    from markupsafe import Markup

    return Markup("".join(f' data-{facet}="{escape("|".join(texts))}"' for facet, texts in values.items()))


def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _theme() -> str:
    light = ";".join(f"{_variable(color)}:{color}" for color in DARK)
    dark = ";".join(f"{_variable(color)}:{other}" for color, other in DARK.items())
    return f":root{{{light}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"


def _variable(color: str) -> str:
    return f"--c-{color[1:]}"
