"""Estimators on counts alone: nobody sums their scores over rows, and they are those of the score table by group."""

from mixope.estimators.asking import answered
from mixope.requests.scores import ClusterScores, ScoreTable


def solved(estimator, problem, answer=None):
    """The solution, whose scores are coefficients; requests for anything else go to ``answer``."""

    def answers(requests):
        return tuple(
            ClusterScores(request.coefficients) if isinstance(request, ScoreTable) else answer([request])[0]
            for request in requests
        )

    return answered(lambda: estimator.solve(problem), answers)
