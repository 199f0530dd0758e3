"""`python -m binwright.cli` is `binwright`."""

from binwright.cli.main import main

if __name__ == "__main__":
    main()
