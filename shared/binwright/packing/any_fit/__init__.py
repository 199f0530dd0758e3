"""The any-fit family: the classical bin-packing algorithms and the modified ones of the paper.

May import the packing's inputs and capacities, the model and the errors.
"""
