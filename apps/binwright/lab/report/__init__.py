"""An experiment's result as a section of tables and charts, written as files or as one page.

Depends on no experiment; each makes its own section.
"""
