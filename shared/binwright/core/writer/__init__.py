"""Decides what lands in a table, exactly once: the table's one writer.

Consumers stage files and announce the offset ranges in them (`Staged`). `chain` joins the ranges
onto what is committed and forms batches, `stamp` is what each commit says about itself and how the
next writer goes on from it, `machine` orders claim, resolve, commit and verdict, `landing` tells
when the next commit is due. Knows nothing of how partitions or tables move between consumers.
"""
