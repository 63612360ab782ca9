"""Reference of what has a name: strategies, collectives, failure patterns, backends, presets, columns, exit codes."""

import ast
import inspect
from dataclasses import MISSING, fields
from typing import Any, get_args, get_type_hints

from docs_page import code, first_paragraph, page, table, text


def strategies_page() -> str:
    """Every strategy with its options."""
    from r2cc_simai.strategies.registry import STRATEGIES

    return page(
        "Strategies",
        "Written `name` or `name:key=value,...`, for example `balance:split=weighted`. Packages can add others: see "
        "[Extending](../extending.md).",
        *(_strategy(name, kind) for name, kind in STRATEGIES.items()),
    )


def _strategy(name: str, kind: type[Any]) -> str:
    hints = get_type_hints(kind)
    options = [
        [code(field.name), code(_type(hints[field.name])), code("" if field.default is MISSING else field.default)]
        for field in fields(kind)
    ]
    module = inspect.getmodule(kind)
    about = [text(part) for part in _prose(module.__doc__ if module else "")]
    return "\n\n".join([f"## {name}", *about, text(_own_doc(kind)), table(("option", "type", "default"), options)])


def _prose(doc: str | None) -> list[str]:
    """The paragraphs of a docstring that are no formulas."""
    parts = inspect.cleandoc(doc or "").split("\n\n")
    return [part for part in parts if not part.startswith(" ") and not part.endswith("::")]


def _own_doc(kind: type[Any]) -> str:
    """The docstring, unless a dataclass made it of the signature."""
    doc = inspect.cleandoc(kind.__doc__ or "")
    return "" if doc.startswith(f"{kind.__name__}(") else doc.partition("\n\n")[0]


def _type(hint: Any) -> str:
    choices = get_args(hint)
    return ", ".join(map(str, choices)) if choices else getattr(hint, "__name__", str(hint))


def patterns_page() -> str:
    """Every failure pattern that ships, with its options."""
    from r2cc_simai.failures.registry import working_patterns

    patterns, _ = working_patterns()
    return page(
        "Failure patterns",
        "Written `name` or `name:option=value,...` where `--fail` and scenario files take a failure. `failures show` "
        "prints what a pattern does on a cluster. One of your own is a file: see "
        "[Pattern file](../formats.md#pattern-file).",
        *(_pattern(one) for one in patterns),
    )


def _pattern(one: Any) -> str:
    options = [[code(o.name), o.takes, _default_of(o)] for o in one.options]
    summary = text(one.summary) + ("." if one.summary else "")
    details = [text(part) for part in one.details.split("\n\n")]
    drawn = "Drawn: depends on the seed." if one.draws else ""
    return "\n\n".join([f"## {one.name}", summary, *details, drawn, table(("option", "takes", "default"), options)])


def _default_of(option: Any) -> str:
    if option.required:
        return "required"
    return "" if option.shown.startswith("[") else code(option.shown.partition("=")[2])


def collectives_page() -> str:
    """Every collective."""
    from r2cc_simai.collectives.operations import OPERATIONS

    rows = [
        [
            code(one.name),
            code(one.alias or one.name),
            "yes" if one.reduces else "",
            "yes" if one.rooted else "",
            "yes" if one.in_blocks else "",
            f"{one.bus_factor(8):g}",
        ]
        for one in OPERATIONS.values()
    ]
    columns = ("name", "nccl-tests", "reduces", "has a root", "size is p blocks", "busbw / algbw, p = 8")
    return page("Collectives", table(columns, rows))


def backends_page() -> str:
    """The backends, and the presets of clusters."""
    from r2cc_simai.cluster.load import load_cluster, preset_names
    from r2cc_simai.engine.run import Backend

    kinds = [
        [code(one.value), text(first_paragraph(one.__doc__) if one.__doc__ != Backend.__doc__ else "")]
        for one in Backend
    ]
    names = " and ".join(row[0] for row in kinds)
    lead = f"`--backend` takes {names}; [Models](../models.md) says how each computes a time."
    presets = []
    for name in preset_names():
        cluster = load_cluster(name)
        presets.append([code(name), text(cluster.spec.description), str(len(cluster.servers)), str(cluster.n_ranks)])
    return page(
        "Backends and presets",
        lead,
        "`--cluster` takes a preset, `NAMExN` (N servers), or a file.",
        table(("preset", "description", "servers", "GPUs"), presets),
    )


def columns_page() -> str:
    """Columns of the results table."""
    from r2cc_simai.results.table import Row

    hints, said = get_type_hints(Row), attribute_docs(Row)
    rows = [[code(f.name), code(_type_of_column(hints[f.name])), text(said.get(f.name, ""))] for f in fields(Row)]
    shown = ("column", "type", "meaning") if any(row[2] for row in rows) else ("column", "type")
    return page(
        "Results table",
        "Columns of `results.csv`, of the Parquet data set and of `--json`, in their order. What each means, and the "
        "metrics: [Formats](../formats.md#results-table).",
        table(shown, (row[: len(shown)] for row in rows)),
    )


def _type_of_column(hint: Any) -> str:
    return "or ".join(
        getattr(t, "__name__", str(t)).replace("NoneType", "nothing") + " " for t in get_args(hint) or (hint,)
    ).strip()


def attribute_docs(kind: type[Any]) -> dict[str, str]:
    """Docstrings below the attributes of a class."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(body, ast.ClassDef)
    found, name = {}, ""
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and name:
            found[name] = str(node.value.value)
    return found


def exit_codes_page() -> str:
    """The errors that end a command, by exit code."""
    from r2cc_simai import errors

    kinds = [k for _, k in inspect.getmembers(errors, inspect.isclass) if issubclass(k, errors.SimaiError)]
    kinds.sort(key=lambda kind: (kind.exit_code, kind.__name__))
    rows = [["0", "", "ok"]]
    rows += [[str(k.exit_code), code(k.__name__), text(k.__doc__)] for k in kinds if k is not errors.SimaiError]
    lead = "Errors are one line on stderr that names the file, the key or the node, and what would be right."
    return page("Exit codes", lead, table(("code", "exception", "meaning"), rows))
