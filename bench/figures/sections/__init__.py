"""From what each bench prints, as JSON, to sections of the page of figures."""
