"""`r2cc-simai real`: runs on real clusters, and logs of real training and serving beside the simulation."""

import typer

from r2cc_simai.cli import real_nccl, real_parse, real_torch

app = typer.Typer(help="Run on a real cluster, and read what real jobs measured.")
run_app = typer.Typer(help="Run nccl-tests, or this project's schedules on torch.distributed.")
run_app.command("nccl-tests")(real_nccl.nccl_tests)
run_app.command("torch")(real_torch.torch)
app.add_typer(run_app, name="run")
app.command("parse")(real_parse.parse)
