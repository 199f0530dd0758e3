"""Requests about brokers and replicas: sizes, configurations, leaders, reassignments.

aiokafka defines some of them and has no method for most; `client` sends them and translates the
answers into `core.ports.brokers`.
"""
