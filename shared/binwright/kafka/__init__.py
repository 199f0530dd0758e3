"""Kafka for the services: clients, control topics, requests that aiokafka does not have.

Implements the port `ControlTopics` on aiokafka and translates its errors. May import the core and the
runtime.
"""
