"""The command line: a thin module for each command, which decides nothing but what is printed.

Only the modules of the command that runs are imported.
"""
