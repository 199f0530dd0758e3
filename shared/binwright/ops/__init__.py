"""What operators use on a running or finished system: audit, live views, recordings.

Reads topics and tables only, so it runs anywhere they can be reached. May import the core, the
runtime and Kafka, not the services or the lab.
"""
