"""Options that all generators of traces have in common, as types for their commands."""

from pathlib import Path
from typing import Annotated

import typer

Output = Annotated[Path, typer.Option("--output", metavar="DIR", help="Folder for the traces; made if need be.")]
GpuName = Annotated[str, typer.Option("--gpu", help="GPU model of the compute times.")]
Compute = Annotated[
    str | None,
    typer.Option("--compute", metavar="SOURCE", help="Compute times: roofline (default), csv or aiconfigurator."),
]
Times = Annotated[
    Path | None, typer.Option("--compute-times", metavar="CSV", help="Table of measured times, for --compute csv.")
]
Fallback = Annotated[bool, typer.Option("--compute-fallback", help="csv: the roofline for what the table lacks.")]
MfuScale = Annotated[float, typer.Option("--mfu-scale", help="Factor on the roofline's efficiencies (calibration).")]
Fold = Annotated[bool, typer.Option("--fold", help="One file for each class of equal ranks.")]
Name = Annotated[str | None, typer.Option("--name", help="NAME of NAME.<rank>.et. Default: that of the model.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a trace of the same name.")]
