"""Reference of the command line, from the commands themselves."""

import inspect
from collections.abc import Iterator
from typing import Any

from docs_page import code, page, table, text


def commands_page() -> str:
    """Every command with its arguments and options, and the exit codes."""
    import typer

    from r2cc_simai.cli.main import app

    root = typer.main.get_command(app)
    sections = [_section(name, command) for name, command in walk(root, "r2cc-simai")]
    return page("Command line", text(root.help), text(root.epilog), *sections)


def walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """(full name, command) of every command below a group that does something of its own."""
    children = getattr(command, "commands", None)
    if not children:
        yield name, command
        return
    for child in children:
        yield from walk(children[child], f"{name} {child}")


def _section(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not getattr(p, "hidden", False)]
    usage = " ".join([name, *(["[OPTIONS]"] if options else []), *(_argument(p) for p in arguments)])
    paragraphs = [text(part) for part in inspect.cleandoc(command.help or "").split("\n\n")]
    return "\n\n".join(
        [
            f"## {name.removeprefix('r2cc-simai ')}",
            f"```\n{usage}\n```",
            *paragraphs,
            table(("argument", "meaning"), ([code(p.name), text(getattr(p, "help", ""))] for p in arguments)),
            table(("option", "default", "meaning"), (_option(p) for p in options)),
        ]
    )


def _argument(parameter: Any) -> str:
    name = str(parameter.name).upper() + ("..." if parameter.nargs != 1 else "")
    return name if parameter.required else f"[{name}]"


def _option(parameter: Any) -> list[str]:
    names = ", ".join(code(name) for name in [*parameter.opts, *parameter.secondary_opts])
    default = parameter.default() if callable(parameter.default) else parameter.default
    shown = "" if default is None or default is False or default == () or "Sentinel" in repr(default) else default
    if parameter.required:
        return [names, "required", text(parameter.help)]
    return [names, code(shown) if shown != "" else "", text(parameter.help)]
