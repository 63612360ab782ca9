"""What a scenario file says of the published or measured figures that belong beside its rows."""

from typing import Literal

from pydantic import Field, model_validator

from r2cc_simai.config import Strict
from r2cc_simai.measured import published


class Reference(Strict):
    """Published or measured figures that rows of one metric are compared with.

    `table` is a file of reports/published; a row of it counts where its columns `bytes`, `strategy`, `n`, `x`, `server`
    and `nic` (those that it has) and all of `where` fit; the smallest value of several wins. `value` names a column, or
    several that are added up; a column in percent is an overhead over `ideal`. `strategy` is the one that a table
    without such a column speaks of, whatever its options. `iteration` tells the bytes of the iteration that a failure
    hits from those of the others; `pattern` is the only failure that the figure speaks of.
    """

    table: str
    metric: Literal["time", "time_first", "time_cut", "rx_bytes", "tokens_per_s"]
    value: str | list[str]
    where: dict[str, str] = Field(default_factory=dict)
    strategy: str | None = None
    iteration: Literal["cut", "steady"] | None = None
    pattern: str | None = None

    @model_validator(mode="after")
    def _exists(self) -> "Reference":
        if self.table not in published.names():
            raise ValueError(f"table: no table {self.table!r} (allowed: {', '.join(published.names())})")
        columns = published.load(self.table)[0]
        for column in [*self.values, *self.where]:
            if column not in columns:
                raise ValueError(f"table {self.table} has no column {column!r} (allowed: {', '.join(columns)})")
        return self

    @property
    def values(self) -> list[str]:
        """The columns that are added up."""
        return [self.value] if isinstance(self.value, str) else self.value
