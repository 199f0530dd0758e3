"""Packings compared on the same streams: scores, and the paper's Figures 9 to 12."""
