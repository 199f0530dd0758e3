"""Other ways to scale the same group on the same load, for comparison.

`interface` is what each one sees and answers; `group` carries that out on the simulated consumers.
`paper` is the paper's controller, `scaling` wraps the rules of `core.scaling`, `peak` provisions
for the peak, `optimum` counts the fewest consumers. `by_name` makes them.
"""
