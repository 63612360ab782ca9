"""The outcome of a check as JUnit XML: one test case for each scenario, strategy and backend."""

from collections import defaultdict
from xml.etree import ElementTree as ET

from r2cc_simai.baseline.numbers import plain
from r2cc_simai.baseline.verdict import Finding, Kind, Verdict
from r2cc_simai.baseline.wording import listed

Case = tuple[str, str, str]


def render_junit(verdict: Verdict, name: str) -> bytes:
    """Return the XML document; a case whose simulation failed is an error, one of which a number moved a failure.

    `classname` is scenario and backend, `name` the strategy with its options. Nothing in it depends on time or place.
    """
    by_case: dict[Case, list[Finding]] = defaultdict(list)
    for finding in verdict.findings:
        if finding.fails:
            by_case[finding.key.scenario, finding.key.strategy, finding.key.backend].append(finding)
    errors = sum(any(f.kind is Kind.ERROR for f in found) for found in by_case.values())
    counts = {
        "tests": str(len(verdict.cases)),
        "failures": str(len(by_case) - errors),
        "errors": str(errors),
        "time": "0",
    }
    root = ET.Element("testsuites", {"name": "r2cc-simai baseline", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": plain(name), **counts, "skipped": "0"})
    for case in sorted(verdict.cases):
        _add_case(suite, case, by_case.get(case, []))
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _add_case(suite: ET.Element, case: Case, found: list[Finding]) -> None:
    scenario, strategy, backend = case
    test = ET.SubElement(suite, "testcase", {"classname": f"{scenario}.{backend}", "name": strategy, "time": "0"})
    if not found:
        return
    failed = any(finding.kind is Kind.ERROR for finding in found)
    lines = listed(found, width=None)
    outcome = ET.SubElement(
        test,
        "error" if failed else "failure",
        {"type": "error" if failed else "moved", "message": f"{len(lines)} outside the baseline: {lines[0]}"},
    )
    outcome.text = "\n".join(lines)
