"""`r2cc-simai trace`: traces of training and serving jobs, made and read."""

import typer

from r2cc_simai.cli import trace_files, trace_megatron, trace_rlhf, trace_vllm

app = typer.Typer(help="Make, check, show and convert Chakra traces.")
app.command("megatron")(trace_megatron.megatron)
app.command("vllm")(trace_vllm.vllm)
app.command("rlhf")(trace_rlhf.rlhf)
app.command("validate")(trace_files.validate)
app.command("show")(trace_files.show)
app.command("convert")(trace_files.convert)
