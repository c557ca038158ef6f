"""A command: how many rows there are."""

import mixope


def command(logs: str) -> None:
    """Count the rows of some logs."""
    print(f"{mixope.read(logs).total_rows()} rows")
