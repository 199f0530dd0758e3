"""Live systems that `binwright lab timings` times: started and loaded here, or read only."""
