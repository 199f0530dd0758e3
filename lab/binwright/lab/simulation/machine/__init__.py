"""The product's own controller and consumers on virtual time.

What decides is `core.controller.machine`, what replies is `core.consumer.machine`: neither is
replaced. This package carries messages between them, starts and ends processes, and gives the
controller measurements of the simulated load. `quiet` finds the time until which nothing can
change, which is what makes a week cheap.
"""
