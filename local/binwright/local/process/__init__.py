"""Child processes: started, awaited, stopped and always reaped, in directories of their own."""
