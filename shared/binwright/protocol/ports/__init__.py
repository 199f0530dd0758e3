"""Protocols of the external systems that the services use.

Decides which operations Kafka, the lake, the staging storage and the fleet offer, with their
errors. Adapters implement them, and so do the fakes in `binwright.testing`.
"""
