"""The reference pages in docs/reference: each is made from the code that it describes."""
