"""The training simulation: traces executed on a cluster under failures and a strategy."""
