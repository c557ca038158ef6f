"""``python -m mixope`` is the command line."""

from mixope.cli import main

if __name__ == "__main__":
    main()
