"""Sweeps: settings, policies, streams and seeds, each combination a simulation of its own.

Each runs on a core of this machine or as a task of Spark, with the same numbers. `results` decides
which settings to recommend.
"""
