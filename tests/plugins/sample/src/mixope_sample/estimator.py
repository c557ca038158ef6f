"""The mean reward over the logged rows by another name, to show the form of an estimator."""

from mixope.estimators import Entry
from mixope.estimators.logged_mean import LoggedMean


class PlainMean:
    """Asks for what the logged mean asks for; a generator, as every estimator that needs sums over the logs."""

    name = "plain-mean"
    ignores_loggers = True

    def solve(self, problem):
        """Ask, and return the solution."""
        return (yield from LoggedMean().solve(problem))


ENTRY = Entry(PlainMean, "reference", "to show how a package adds an estimator")
