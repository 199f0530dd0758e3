"""Kafka for the programs: control topics, look-ups about clusters, and what aiokafka lacks.

`control_topics` implements the port of that name; `readers` and `publishing` are its two halves.
`client`, `leaders` and `topics` ask brokers, by `frames` where aiokafka has no such request.
"""
