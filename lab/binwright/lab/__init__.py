"""Experiments: measurement streams, load, packings compared, and figures.

Nothing here runs in production. May import the core, the packings, the runtime, Kafka and `ops`;
the services may not import it.
"""
