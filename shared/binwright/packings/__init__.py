"""Every packing that the settings and the lab may name: the core's and `exact`.

`exact` solves an integer program and needs scipy, which the core may not import. The controller and
the lab look names up here. May import the core.
"""
