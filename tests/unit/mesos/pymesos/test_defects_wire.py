"""What stock pymesos says wrong on the wire our driver says right.

22 (header values broken by a segment's end) is a defect of the C parser of http-parser, which does
not build on Python 3.11: test_http_parser.py shows that the vendored one does not have it.
"""

import json

import pytest


@pytest.mark.parametrize("version", ["1.11.1-rc1", "1.12.0-dev"])
def test_20_a_version_may_have_a_suffix(version, master, stage, eventually):
    master.on_version = lambda e: e.respond(200, json.dumps({"version": version}).encode())

    def subscribe(exchange):
        exchange.subscribe(master_info={"version": version})
        exchange.hold()

    master.on_subscribe = subscribe
    driver = stage.registered(master.address)
    master.event({"type": "OFFERS", "offers": {"offers": [{"id": {"value": "o"}}]}})
    eventually(lambda: driver.sched.of("resourceOffers"))
    assert driver.version == version


def test_21_credentials_do_not_leak_to_another_master(masters, stage, eventually):
    trusted, stranger = masters(), masters()
    stage.registered(trusted.address, principal="us", secret="hidden").reviveOffers()
    stage.registered(stranger.address).reviveOffers()
    eventually(lambda: stranger.calls("REVIVE"))
    assert trusted.requests_of("REVIVE")[0].headers["authorization"].startswith("Basic ")
    leaked = "authorization" in stranger.requests_of("REVIVE")[0].headers
    assert not leaked


def test_26_a_new_subscription_keeps_suppressed_roles(master, stage, eventually):
    driver = stage.registered(master.address)
    driver.suppressOffers(["tensorflow"])
    eventually(lambda: master.calls("SUPPRESS"))
    master.streams[-1].close()
    eventually(lambda: len(master.subscribes) > 1)
    sent = master.subscribes[1]["subscribe"].get("suppressed_roles")
    assert sent == ["tensorflow"]


def test_a_revived_role_is_not_suppressed_any_more(master, stage, eventually):
    driver = stage.registered(master.address)
    driver.suppressOffers()
    assert driver.suppressed_roles == {"tensorflow"}
    driver.reviveOffers(["tensorflow"])
    master.streams[-1].close()
    eventually(lambda: len(master.subscribes) > 1)
    assert "suppressed_roles" not in master.subscribes[1]["subscribe"]


def test_19_and_25_the_framework_is_sent_verbatim_and_the_callers_dict_stays_as_it_is(
    master, stage, eventually
):
    framework = {
        "name": "t",
        "capabilities": [{"type": "PARTITION_AWARE"}],
        "anything": {"else": [1]},
    }
    given = json.loads(json.dumps(framework))
    driver = stage.registered(master.address, framework=framework)
    assert master.subscribes[0]["subscribe"]["framework_info"] == given
    assert framework == given
    master.streams[-1].close()
    eventually(lambda: len(master.subscribes) > 1)
    again = master.subscribes[1]
    assert again["framework_id"] == again["subscribe"]["framework_info"]["id"]
    assert again["framework_id"] == {"value": driver.framework_id}


def test_only_calls_carry_the_stream_id(master, stage):
    driver = stage.registered(master.address)
    driver.reviveOffers()
    assert "mesos-stream-id" not in master.requests_of("SUBSCRIBE")[0].headers
    assert master.requests_of("REVIVE")[0].headers["mesos-stream-id"] == driver.stream_id
