"""Experiments: measurement streams, load, packings compared, and figures.

Nothing here runs in production.
"""
