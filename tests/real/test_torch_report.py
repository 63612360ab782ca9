"""Reports of ranks: written as lines, read back from a log in which those of all ranks are mixed."""

import pytest

from r2cc_simai.errors import InputError
from r2cc_simai.real.torch_rank import place
from r2cc_simai.real.torch_report import ErrorReport, IterationReport, StartReport, first_error, read_reports


def test_an_iteration_lasts_as_long_as_its_slowest_rank(capsys):
    StartReport(0, "a", "2.13.0", 7).print()
    for rank, time_s in ((1, 0.5), (0, 0.25)):
        IterationReport(rank, 0, True, 9.0, 0).print()
        IterationReport(rank, 1, False, time_s, 2 * rank).print()
    IterationReport(0, 2, False, 0.25, 0).print()  # rank 1 has not ended it
    text = "noise\n" + "".join(f"[1,0]<stdout>: {line}\n" for line in capsys.readouterr().out.splitlines())
    found = read_reports("torch.log", text)
    assert found.starts[0].torch == "2.13.0"
    assert found.complete(2) == [1]
    assert found.time_s(1) == 0.5
    assert found.wrong() == 2
    assert found.complete(3) == []


def test_the_first_rank_that_gave_up(capsys):
    ErrorReport(1, "round 3 of 7: timed out").print()
    found = read_reports("torch.log", capsys.readouterr().out)
    assert first_error(found, range(2)) == "rank 1: round 3 of 7: timed out"


@pytest.mark.parametrize("line", ['[torch-rank] {"kind": "Nothing"}', "[torch-rank] {", "[torch-rank] 7"])
def test_a_torn_report_is_named_with_its_line(line):
    with pytest.raises(InputError, match=r"torch\.log:2: expected a report of a rank"):
        read_reports("torch.log", f"x\n{line}\n")


def test_the_place_of_a_rank_as_each_launcher_says_it():
    assert place({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}) == (3, 8, 1)
    slurm = {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1"}
    assert place(slurm) == (3, 8, 1)
    mpi = {f"OMPI_COMM_WORLD_{name}": value for name, value in (("RANK", "3"), ("SIZE", "8"), ("LOCAL_RANK", "1"))}
    assert place({**mpi, **slurm}) == (3, 8, 1)
    with pytest.raises(InputError, match="torchrun, mpirun, srun"):
        place({})
