"""Views of a group from outside, folded from its metadata and metrics topics.

`group_view` is the fold; status, table status and metrics are derived from it. `rates_view` folds
the metrics topic alone. `topic_readers` opens both topics.
"""
