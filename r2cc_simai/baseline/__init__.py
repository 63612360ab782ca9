"""The gate on the overhead numbers: committed baselines, and what of a run is not as in them.

`numbers` says what is watched, `files` keeps it, `rules` what it may move by, `verdict` what moved; `wording`,
`markdown`, `junit` and `as_json` say so. Importing this package imports nothing heavy.
"""
