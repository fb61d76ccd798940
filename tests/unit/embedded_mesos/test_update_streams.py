"""Updates wait for acknowledgement, one at a time."""

import base64
from typing import Any

from embedded_mesos import Timing
from embedded_mesos.agent.update_streams import UpdateStreams

Json = dict[str, Any]


def uid(number: int) -> str:
    return base64.b64encode(bytes([number]) * 16).decode()


def status(state: str, number: int) -> Json:
    return {"task_id": {"value": "t"}, "state": state, "uuid": uid(number)}


class Streams(UpdateStreams):
    def __init__(self) -> None:
        self.sent: list[Any] = []
        super().__init__(Timing(update_retry=10, update_retry_max=35), self.sent.append)


def streams() -> Streams:
    found = Streams()
    found.resume(0)
    return found


def states(found: Streams) -> list[str]:
    sent = [effect.message.status["state"] for effect in found.sent]
    found.sent.clear()
    return sent


def test_later_update_waits_for_the_first() -> None:
    found = streams()
    found.put("f", status("TASK_STARTING", 1), 0)
    found.put("f", status("TASK_RUNNING", 2), 1)
    assert states(found) == ["TASK_STARTING"]
    found.acknowledge("f", "t", uid(1), 2)
    assert states(found) == ["TASK_RUNNING"]


def test_update_is_sent_again_after_doubling_waits() -> None:
    found = streams()
    found.put("f", status("TASK_RUNNING", 1), 0)
    found.sent.clear()
    seen = []
    for now in range(1, 120):
        found.tick(now)
        if states(found):
            seen.append(now)
    assert seen == [10, 30, 65, 100]


def test_retry_tells_the_latest_state() -> None:
    found = streams()
    found.put("f", status("TASK_STARTING", 1), 0)
    found.put("f", status("TASK_FINISHED", 2), 0)
    found.sent.clear()
    found.tick(10)
    (effect,) = found.sent
    assert effect.message.latest_state == "TASK_FINISHED"


def test_wrong_acknowledgement_is_ignored() -> None:
    found = streams()
    found.put("f", status("TASK_FINISHED", 1), 0)
    found.acknowledge("f", "t", uid(9), 0)
    assert found.has("f", "t")


def test_stream_ends_with_the_acknowledged_end() -> None:
    found = streams()
    found.put("f", status("TASK_FINISHED", 1), 0)
    found.acknowledge("f", "t", uid(1), 0)
    assert not found.has("f", "t")


def test_nothing_is_sent_while_paused_and_all_firsts_after_it() -> None:
    found = streams()
    found.pause()
    found.put("f", status("TASK_RUNNING", 1), 0)
    found.tick(100)
    assert not found.sent
    found.resume(101)
    assert states(found) == ["TASK_RUNNING"]
