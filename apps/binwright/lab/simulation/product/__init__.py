"""The product's own controller and consumers on virtual time.

The controller's own machine decides, and the consumer's own hand-over replies: neither is replaced.
This package carries messages between them, starts and ends processes, and gives the controller
measurements of the simulated load. `idle_skip` finds the time until which nothing can change, which
makes a week cheap.
"""
