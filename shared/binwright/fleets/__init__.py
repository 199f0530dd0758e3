"""Where processes that a program starts run, and how they are reconciled with what is wanted."""
