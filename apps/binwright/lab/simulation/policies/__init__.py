"""Other ways to scale the same group on the same load, for comparison.

`rules` are those of others, `catalogue` has each policy by its name with how a group carries out
its decisions, `optimum` counts the fewest consumers.
"""
