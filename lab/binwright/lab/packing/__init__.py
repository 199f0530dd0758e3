"""Packings compared on the same streams: scores, the paper's Figures 9 to 12, on cores or Spark.

May import the core, the packings and the lab's streams.
"""
