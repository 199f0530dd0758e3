"""The commands of `binwright lab`: one module each; `app` imports the one that runs."""
