"""The version, in one place: the build reads it, results carry it."""

__version__ = "0.2.0"
