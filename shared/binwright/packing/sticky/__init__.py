"""Our own packing: moves what no longer fits, and closes a consumer where that pays.

Decides which few partitions move, weighing consumers, moved bytes/s and spare capacity; `policy` is
its entry.
"""
