"""``always:1``, the policy that takes action 1 of the actions 0 and 1 in every state."""

from mixope.policies.kinds import Kind
from mixope.policies.tabular import Constant


def fits(source):
    """Whether a source is such a word."""
    return isinstance(source, str) and source.startswith("always:")


def make(source, wishes):
    """The policy."""
    action = int(source.removeprefix("always:"))
    return Constant([float(action == 0), float(action == 1)], unknown_actions=wishes.unknown_actions)


KIND = Kind("word", fits, make, ("unknown_actions",))
