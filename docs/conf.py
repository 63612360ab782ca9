"""Configuration of the documentation site: `make docs`, then open docs/_build/html/index.html."""

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tools"))

import docs_site  # noqa: E402

from r2cc_simai import __version__  # noqa: E402

project = "r2cc-simai"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
myst_heading_anchors = 4
highlight_language = "none"
add_module_names = False
nitpicky = True
suppress_warnings = [
    "misc.highlighting_failure",  # examples of JSON with ellipses
    "ref.python",  # the type `bytes` beside attributes of that name
]
nitpick_ignore_regex = [("py:.*", ".*")]  # types of other packages, whose documentation is not at hand

autodoc_member_order = "bysource"
autodoc_default_options = {"exclude-members": "model_config,model_post_init"}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = "r2cc-simai"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
pygments_style = "default"
pygments_dark_style = "github-dark"


def setup(app: Any) -> None:
    """Generates the reference before the build, and treats docstrings and links as this project writes them."""
    docs_site.write_reference(HERE / "reference")
    app.connect("source-read", docs_site.process_source)
    app.connect("autodoc-skip-member", docs_site.skip_member)
    app.connect("autodoc-process-docstring", docs_site.process_docstring, priority=100)
