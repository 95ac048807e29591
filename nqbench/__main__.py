"""Run the command line as ``python -m nqbench``."""

from nqbench.cli import main

if __name__ == "__main__":
    main()
