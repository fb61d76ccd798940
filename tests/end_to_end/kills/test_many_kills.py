"""Everything is killed, at random places and moments, hundreds of times; the training ends right.

Each way to kill comes once, then they come as often as they do in a long life. ``KILLS=500`` plays
the long version (about a quarter of an hour); a seed in ``KILLS_SEED`` plays the same kills again.
"""

import os

import pytest

from jobs.killed_training import finish, killed_training

KILLS = int(os.environ.get("KILLS", "9"))
SEED = int(os.environ.get("KILLS_SEED", "1"))


@pytest.mark.zookeeper
@pytest.mark.timeout(240 + 6 * KILLS)
def test_a_training_that_is_killed_everywhere_ends_with_the_right_result(tmp_path, own_zookeeper):
    with killed_training(tmp_path, own_zookeeper, SEED) as training:
        while len(training.kills) < KILLS:
            training.kill_something()
            if training.dice.random() < 0.2:
                training.kill_something()
            training.trains_on()
        finish(training)
