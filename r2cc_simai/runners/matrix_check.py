"""Everything that a matrix names is read before anything runs."""

from functools import partial
from pathlib import Path

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.engine.run import Backend
from r2cc_simai.errors import InputError
from r2cc_simai.runners.matrix import Matrix
from r2cc_simai.runners.matrix_cases import MatrixCase, draws, fits, matrix_cases, task_of
from r2cc_simai.runners.scenario_file import checked
from r2cc_simai.strategies.registry import parse_strategy

MOST_CASES = 1_000_000


def check_matrix(where: str, index: int, matrix: Matrix, base: Path | None) -> None:
    """Reads clusters, workloads, strategies, patterns (each with its first seed) and filters of a matrix.

    Raises:
        InputError: the first thing that is wrong, with `where` (file and block) and the key in front.
    """
    for strategy in matrix.strategies:
        checked(f"{where}: strategies", partial(parse_strategy, strategy))
    for cluster in matrix.clusters:
        checked(f"{where}: clusters", partial(load_cluster, cluster))
    for pattern in matrix.patterns:
        checked(f"{where}: patterns", partial(draws, pattern))
    for number, workload in enumerate(matrix.workloads):
        checked(f"{where}: workloads.{number}: size", partial(getattr, workload, "bytes"))
    _check_number(where, matrix)
    _check_filters(where, index, matrix)
    cases = list(matrix_cases(index, matrix))
    if not cases:
        raise InputError(f"{where}: only and exclude leave no case")
    _check_backends(where, cases)
    _check_jobs(where, matrix, cases)
    for case in _first_of_each(cases):
        checked(f"{where}: patterns", partial(task_of, case, base))


def _check_number(where: str, matrix: Matrix) -> None:
    """No more cases than anyone can run, before they are spelled out."""
    one = len(matrix.clusters) * len(matrix.workloads) * len(matrix.strategies) * len(matrix.backends)
    cases = one * sum(len(matrix.seeds.all) if draws(pattern) else 1 for pattern in matrix.patterns)
    if cases > MOST_CASES:
        raise InputError(f"{where}: {cases} cases; at most {MOST_CASES} in one block")


def _check_filters(where: str, index: int, matrix: Matrix) -> None:
    whole = matrix.model_copy(update={"only": [], "exclude": []})
    everything = list(matrix_cases(index, whole)) if matrix.only or matrix.exclude else []
    for key, filters in (("only", matrix.only), ("exclude", matrix.exclude)):
        for number, one in enumerate(filters):
            if not any(fits(one, case) for case in everything):
                written = ", ".join(f"{k}: {v}" for k, v in one.model_dump().items() if v is not None)
                raise InputError(f"{where}: {key}.{number}: no case has {written}")


def _check_backends(where: str, cases: list[MatrixCase]) -> None:
    for case in cases:
        if not case.workload.is_collective and case.backend is not Backend.FLOW:
            raise InputError(
                f"{where}: backends: training jobs run by flow alone; "
                f"exclude: [{{workload: {case.workload.label}, backend: {case.backend.value}}}]"
            )


def _check_jobs(where: str, matrix: Matrix, cases: list[MatrixCase]) -> None:
    """The options of each training job fit each cluster that it meets."""
    met = {(case.cluster, case.workload.label) for case in cases}
    for number, workload in enumerate(matrix.workloads):
        for cluster in matrix.clusters:
            if not workload.is_collective and (cluster, workload.label) in met:
                checked(f"{where}: workloads.{number}", workload.training_job(cluster).check)


def _first_of_each(cases: list[MatrixCase]) -> list[MatrixCase]:
    """One case of each pattern on each cluster and workload."""
    first: dict[tuple[str, str, str], MatrixCase] = {}
    for case in cases:
        first.setdefault((case.cluster, case.workload.label, case.pattern), case)
    return list(first.values())
