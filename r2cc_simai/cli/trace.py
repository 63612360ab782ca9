"""`r2cc-simai trace`: traces of training and serving jobs, made and read."""

import typer

from r2cc_simai.cli import trace_megatron

app = typer.Typer(help="Make, check, show and convert Chakra traces.")
app.command("megatron")(trace_megatron.megatron)
