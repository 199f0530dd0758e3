"""The hand-over: controllers and consumers under any order of their messages and with faults."""
