"""Decides what becomes of the plans for brokers that a controller proposes.

- `proposals`: what the records of their topic say, what is proposed, and when it is out of date.

May import `balance`, the protocol, the ports, the errors and the model.
"""
