"""`r2cc-simai failures new`: a working failure pattern to begin with, and its test."""

import keyword
from pathlib import Path
from typing import Annotated

import typer

PYTHON = '''"""A failure pattern of our own: what fails, when, and for how long."""

from collections.abc import Iterator

from r2cc_simai.failures.pattern import Incident, Seconds, Site, pattern


@pattern
def {function}(site: Site, rail: int = 0, at: Seconds = 0.0, each: Seconds = 60.0) -> Iterator[Incident]:
    """The NICs of a rail fail one after the other, each for a while."""
    below = [nic for nic in site.cluster.nics if nic.rail == rail]
    for place, nic in enumerate(below):
        begin_s = at + place * each
        yield Incident(nic.full_name, begin_s, begin_s + each, state=0.0, cause="{name}")
'''

YAML = """# A failure pattern of our own: what fails, when, and for how long.
pattern: {name}
description: a rail goes down for a minute, and a NIC keeps half of its rate to the end
changes:
  - {{component: rail0, state: down, from: 10s, to: 70s, cause: {name}}}
  - {{component: server0.nic1, state: 0.5, from: 30s}}
repeat: {{every: 2h, times: 3}}
"""

TEST = '''"""The pattern `{name}` of {file}."""

from pathlib import Path

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.failures.compose import timeline_of
from r2cc_simai.failures.registry import load_pattern_file, parse_pattern

FILE = Path(__file__).with_name("{file}")


def test_what_fails_and_for_how_long():
    """{rule}"""
    load_pattern_file(FILE)
    cluster = load_cluster("h100x4")
    incidents = parse_pattern("{name}").incidents(cluster)
    assert [(one.component, one.begin_s, one.end_s) for one in incidents] == [
{expected}
    ]
    timeline = timeline_of(incidents, cluster, "{name}")
    assert timeline.fractions(len(cluster.nics), {time})[:2].tolist() == {left}
'''


def new_pattern(
    name: Annotated[str, typer.Argument(help="Name of the pattern: lower-case words with - between.")],
    yaml: Annotated[bool, typer.Option("--yaml", help="Write it as YAML instead of Python.")] = False,
    dir_: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Folder to write to.")] = Path(),
) -> None:
    """Write a working pattern NAME.py (or .yml) and its test, test_NAME.py, to change as you like."""
    function = _checked(name)
    file = dir_ / (f"{name}.yml" if yaml else f"{function}.py")
    test = dir_ / f"test_{function}.py"
    body = (YAML if yaml else PYTHON).format(name=name, function=function)
    _write({file: body, test: _test(name, file.name, yaml)})
    typer.echo(f"wrote {file} and {test}")
    typer.echo(f"  r2cc-simai failures show {name} --pattern-file {file} --cluster h100x4")
    typer.echo(f"  pytest {test}")
    typer.echo(f"Every --fail takes it beside --pattern-file {file}; a sweep file names it under pattern_files.")


def _checked(name: str) -> str:
    from r2cc_simai.errors import InputError
    from r2cc_simai.failures.pattern import NAME
    from r2cc_simai.failures.registry import pattern_names

    if not NAME.fullmatch(name):
        raise InputError(f"{name!r}: a name is lower-case words with - between, as power-cut")
    if name in pattern_names():
        raise InputError(f"{name!r}: there is a pattern of this name; choose another")
    function = name.replace("-", "_")
    if keyword.iskeyword(function):
        raise InputError(f"{name!r}: a word of Python itself; choose another")
    return function


def _test(name: str, file: str, yaml: bool) -> str:
    if yaml:
        rule = "Rail 0 is down for a minute from 10 s on, a NIC keeps half from 30 s on; the whole three times."
        expected = [
            line
            for start in (0, 7200, 14400)
            for line in (
                f'        ("rail0", {start + 10}, {start + 70}),',
                f'        ("server0.nic1", {start + 30}, float("inf")),',
            )
        ]
        time, left = "40", "[0.0, 0.5]"
    else:
        rule = "The NIC of rail 0 on every server, one after the other, each for a minute."
        expected = [f'        ("server{i}.nic0", {60 * i}, {60 * i + 60}),' for i in range(4)]
        time, left = "30", "[0.0, 1.0]"
    return TEST.format(name=name, file=file, rule=rule, expected="\n".join(expected), time=time, left=left)


def _write(files: dict[Path, str]) -> None:
    from r2cc_simai.errors import InputError

    for path in files:
        if path.exists():
            raise InputError(f"{path}: is there already; nothing was written")
    for path, text in files.items():
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"--dir {path.parent}: {error.strerror or 'cannot be written'}") from None
