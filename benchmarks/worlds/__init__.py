"""Worlds that nobody of the project wrote: classic control and MuJoCo, with policies found by random search."""
