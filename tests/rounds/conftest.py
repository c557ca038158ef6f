"""One thread for linear algebra and boosting: these worlds are small, and threads that wait for each other are slow."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    with threadpool_limits(1):
        yield
