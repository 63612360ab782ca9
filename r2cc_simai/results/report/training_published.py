"""Single published figures on training: `reports/published/training_scale.csv`."""

from r2cc_simai.measured import published

TABLE = "training_scale"


def value(quantity: str) -> float | None:
    """Return a published figure by its name, in the unit of the table; None where it is not there."""
    if TABLE not in published.names():
        return None
    return next((float(line["value"]) for line in published.load(TABLE) if line["quantity"] == quantity), None)
