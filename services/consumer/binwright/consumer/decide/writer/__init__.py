"""Decides what a table's one writer commits, so that each offset lands exactly once.

Consumers stage files and announce the offset ranges in them (`Staged`). `chain` joins these ranges
to what is committed and forms batches; `stamp` is the metadata of each commit, from which the next
writer continues; `machine` goes through the `phases` claim, resolve and land; `landing` decides
when the next commit is due. May import the messages, the ports and the model, nothing of how
partitions or tables move between consumers.
"""
