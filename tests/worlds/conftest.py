import pytest

from mixope.worlds import make, soft_q


@pytest.fixture(scope="session")
def taxi():
    return make("taxi")


@pytest.fixture(scope="session")
def taxi_target(taxi):
    return soft_q.target(taxi, seed=0)


@pytest.fixture(scope="session")
def taxi_stages(taxi):
    return soft_q.stages(taxi, 4, seed=0)
