"""Decides what a table's one writer commits, so that each offset lands exactly once.

Consumers stage files and announce the offset ranges in them (`Staged`). `chain` joins these ranges
to what is committed and forms batches. `machine` goes through the `states` claim, resolve and land:
`commits` says what the next writer resolves from the stamps of earlier ones, `landing` when the
next commit is due, and `append` which requests that commit takes.
"""
