"""Plans: what triggers one, what it changes, whether it is worth its moves, how it gets approved.

May import the controller's group and ownership, the packing's score and spread, and messages; does
not depend on how a move is carried out.
"""
