"""Protocols of the external systems that the services use.

Decides which operations Kafka, the lake, the staging storage and the fleet offer, with their
errors. Adapters implement them, and so do the fakes in `binwright.testing`. A port may import only
the model and the selection of topics, so that every package of the core may import the ports.
"""
