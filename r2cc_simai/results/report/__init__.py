"""Reports: the results table as Markdown, as one self-contained HTML page and as plots.

A section is a module: it says which rows it claims and makes a `document.Section` of them. Rows that no
section claims by name go to the generic section, so that any sweep gets a report.
"""

from r2cc_simai.results.report.build import ReportPaths, build_report

__all__ = ["ReportPaths", "build_report"]
