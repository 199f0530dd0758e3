"""Looks at a group from outside, folded from its metadata and metrics topics.

`group_view` is the fold, `follower` keeps it up to date, `status` and `table_status` are derived
from it. `rates_view` folds the metrics topic alone.
"""
