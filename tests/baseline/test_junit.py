"""JUnit XML, as CI servers read it."""

from xml.etree import ElementTree as ET

import pytest

from r2cc_simai.baseline.junit import render_junit
from r2cc_simai.results import error_row

ALLOWED = {
    "testsuites": {"name", "tests", "failures", "errors", "time", "disabled"},
    "testsuite": {"name", "tests", "failures", "errors", "time", "skipped", "timestamp", "hostname", "package", "id"},
    "testcase": {"name", "classname", "time", "status", "assertions"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
}
"""Elements and attributes of the schema that Jenkins and GitLab read (junit-10.xsd)."""

CHILDREN = {"testsuites": {"testsuite"}, "testsuite": {"testcase"}, "testcase": {"failure", "error"}}


@pytest.fixture(scope="module")
def report(rows, scaled, compare):
    """Return the document of a run in which balance moved and one case of hot-repair failed."""
    failed = error_row(
        scenario="demo",
        cluster="uniformx4",
        workload="all_reduce",
        pattern="server0.nic0=0.875@0",
        strategy="hot-repair",
        backend="flow",
        bytes=1 << 30,
        error="a\x1b[31mred\x00 <reason> & \ud800",
    )
    return ET.fromstring(render_junit(compare(rows, [failed, *scaled(rows, "balance", 1.02)[2:]]), "paper"))


def test_elements_and_attributes_are_those_of_the_schema(report):
    for parent in report.iter():
        assert set(parent.attrib) <= ALLOWED[parent.tag]
        assert {child.tag for child in parent} <= CHILDREN.get(parent.tag, set())
        assert parent.tag in ("failure", "error") or {"name"} <= set(parent.attrib)


def test_there_is_a_case_for_each_scenario_strategy_and_backend(report):
    names = {(case.get("classname"), case.get("name")) for case in report.iter("testcase")}
    strategies = ("hot-repair", "balance", "r2cc-allreduce:k=128")
    assert names == {(f"demo.{backend}", strategy) for backend in ("flow", "chunk") for strategy in strategies}


def test_counts_are_those_of_the_cases(report):
    (suite,) = report
    for element in (report, suite):
        assert (element.get("tests"), element.get("failures"), element.get("errors")) == ("6", "2", "1")
    assert len(list(report.iter("testcase"))) == 6
    assert (len(list(report.iter("failure"))), len(list(report.iter("error")))) == (2, 1)


def test_a_failure_lists_what_moved(report):
    failure = report.find("testsuite/testcase[@name='balance']/failure")
    assert failure.get("message").startswith(
        "9 outside the baseline: demo, uniformx16, all_reduce, server0.nic0=0.5@0, balance, "
    )
    assert len(failure.text.splitlines()) == 9
    assert all("(+2.00%)" in line for line in failure.text.splitlines())


def test_what_xml_cannot_hold_is_written_as_an_escape(report):
    assert r"a\x1b[31mred\x00 <reason> & \ud800" in report.find(".//error").text


def test_a_clean_check_has_no_failure(rows, compare):
    clean = ET.fromstring(render_junit(compare(rows, rows), "paper"))
    assert (clean.get("failures"), clean.get("errors")) == ("0", "0")
    assert not list(clean.iter("failure"))
