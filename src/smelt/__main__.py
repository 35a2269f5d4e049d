"""``python -m smelt`` is the command ``smelt``."""

from smelt.cli.main import run

if __name__ == "__main__":
    run()
