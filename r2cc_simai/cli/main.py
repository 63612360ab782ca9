"""The command line `r2cc-simai`: its commands, and how errors become one line and an exit code.

Nothing heavy is imported here or at the top of a command's file, so that `--help` is instant.
"""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, cast

import typer

from r2cc_simai import __version__
from r2cc_simai.cli import (
    advise,
    baseline,
    calibrate,
    cluster,
    coll,
    compare,
    export,
    failures,
    lab,
    real,
    report,
    sim,
    stats,
    sweep,
    trace,
)
from r2cc_simai.errors import InputError, MissingComponentError, SimaiError

INTERRUPTED = 130  # 128 + SIGINT, as shells count
PIPE_CLOSED = 141  # 128 + SIGPIPE

EXIT_CODES = (
    "Exit codes: 0 ok, 1 regression or mismatch, 2 bad input, 3 partitioned or unfinished, 4 a component is missing."
)

app = typer.Typer(
    name="r2cc-simai",
    help="What network failures cost LLM training and serving, and which collective saves how much of it.",
    epilog=EXIT_CODES,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("coll")(coll.coll)
app.command("sweep")(sweep.sweep)
app.command("sim")(sim.sim)
app.command("stats")(stats.stats)
app.command("advise")(advise.advise)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("calibrate")(calibrate.calibrate)
app.command("export")(export.export)
app.add_typer(baseline.app, name="baseline")
app.add_typer(cluster.app, name="cluster")
app.add_typer(failures.app, name="failures")
app.add_typer(trace.app, name="trace")
app.add_typer(real.app, name="real")
app.add_typer(lab.app, name="lab")

_USAGE_ERROR = cast("type[Exception]", next(b for b in typer.BadParameter.__mro__ if b.__name__ == "ClickException"))


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    if version:
        typer.echo(f"r2cc-simai {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command (`sys.argv` by default) and returns its exit code; a user's error is one line on stderr."""
    try:
        code = app(args=None if arguments is None else list(arguments), prog_name="r2cc-simai", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SimaiError as error:
        return _fail(str(error), error.exit_code)
    except ImportError as error:
        return _fail(_missing(error), MissingComponentError.exit_code)
    except BrokenPipeError:
        return _pipe_closed()
    except SystemExit as error:  # typer ends so when a pipe is closed under it
        if isinstance(error.__context__, BrokenPipeError):
            return _pipe_closed()
        raise
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", INTERRUPTED)
    except _USAGE_ERROR as error:
        return _fail(_usage(error), InputError.exit_code)


def _pipe_closed() -> int:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still to be flushed goes nowhere
    return PIPE_CLOSED


def _fail(message: str, code: int) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return code


def _missing(error: ImportError) -> str:
    name = error.name or ""
    if "_core" in name or "_core" in str(error):
        return "the compiled engine is missing; run make simai"
    return f"{name or error}: not installed; run make simai"


def _usage(error: BaseException) -> str:
    message: str = error.format_message()  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "r2cc-simai"
    return f"{message.rstrip('.')} (see {command} --help)"


if __name__ == "__main__":
    sys.exit(run())
