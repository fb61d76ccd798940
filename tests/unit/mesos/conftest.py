"""The scripted master's fixtures."""

from masters.scripted_master import (  # noqa: F401
    black_hole,
    eventually_fixture,
    master,
    masters,
    real_back_off,
    stage,
    stays_fixture,
)
