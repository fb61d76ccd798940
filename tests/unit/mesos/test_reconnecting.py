"""Keeping a subscription: lists of masters, redirects, streams that end anywhere."""

import socket

from dcos_tensorflow.mesos.address import Address

UPDATE = {
    "type": "UPDATE",
    "update": {"status": {"task_id": {"value": "t"}, "message": "zwölf Boxkämpfer"}},
}


def test_the_next_master_of_a_list_is_tried_when_one_fails(masters, stage):
    broken, healthy = masters(), masters()
    broken.on_subscribe = lambda exchange: exchange.respond(503)
    driver = stage.registered(f"{broken.address},{healthy.address}")
    assert driver.master == healthy.address


def test_a_redirect_as_mesos_sends_it_is_followed_at_once(masters, stage):
    follower, leader = masters(), masters()
    location = f"//{leader.address}/master/api/v1/scheduler"
    follower.on_subscribe = lambda exchange: exchange.respond(307, Location=location)
    driver = stage.registered(follower.address)
    assert driver.master == leader.address
    assert leader.requests_of("SUBSCRIBE")[0].path == "/api/v1/scheduler"


def test_when_the_leader_is_gone_the_configured_master_is_asked_again(masters, stage, eventually):
    follower, leader = masters(), masters()
    follower.on_subscribe = lambda exchange: (
        follower.healthy(exchange)
        if len(follower.subscribes) > 1
        else exchange.respond(307, Location=f"//{leader.address}/")
    )
    driver = stage.registered(follower.address)
    leader.close()
    eventually(lambda: driver.sched.of("reregistered"))
    assert driver.master == follower.address


def test_a_changed_master_is_subscribed_to_at_once(masters, stage, eventually):
    first, second = masters(), masters()
    driver = stage.registered(first.address)
    driver.change_master(second.address)
    eventually(lambda: driver.sched.of("reregistered"))
    assert driver.master_address == Address("127.0.0.1", second.port)
    assert len(driver.sched.of("disconnected")) == 1


def test_without_a_master_the_driver_waits_for_one(master, stage, stays, eventually):
    driver = stage.registered(master.address)
    driver.change_master(None)
    eventually(lambda: driver.sched.of("disconnected"))
    assert stays(lambda: len(master.subscribes) == 1, 0.3)
    driver.change_master(master.address)
    eventually(lambda: driver.sched.of("reregistered"))


def test_unknown_and_malformed_events_are_passed_over(master, stage, eventually):
    driver = stage.registered(master.address)
    for event in ({"type": "NEWS", "news": {}}, {"type": "UPDATE"}, {}, {"type": "OFFERS"}):
        master.event(event)
    master.event(UPDATE)
    eventually(lambda: driver.sched.of("statusUpdate"))
    assert driver.connected


def test_registered_is_called_once_and_reregistered_after_it(master, stage, eventually):
    driver = stage.registered(master.address)
    master.streams[-1].close()
    eventually(lambda: driver.sched.of("reregistered"))
    assert len(driver.sched.of("registered")) == 1
    (master_info,) = driver.sched.of("reregistered")[0]
    assert master_info["version"] == "1.12.0"


def test_a_framework_with_an_id_is_reregistered(master, stage, eventually):
    driver = stage.hardened(master.address, framework={"name": "t", "id": {"value": "known"}})
    eventually(lambda: driver.sched.of("reregistered"))
    assert master.subscribes[0]["framework_id"] == {"value": "known"}
    assert not driver.sched.of("registered")


def test_stop_does_not_wait_for_a_master_that_answers_no_syn(black_hole, stage, eventually):
    driver = stage.hardened(black_hole, timeout=60.0)
    eventually(lambda: driver._subscriber and driver._subscriber._stream)
    driver.stop()
    driver.join(5)
    assert not driver._subscriber.thread.is_alive()


def test_stop_does_not_wait_for_a_tls_handshake(stage):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        driver = stage.hardened(f"https://127.0.0.1:{port}", timeout=60.0)
        accepted, _ = mute.accept()
        assert accepted.recv(1) == b"\x16", "the client's hello"
        driver.stop()
        driver.join(5)
        assert not driver._subscriber.thread.is_alive()
        accepted.close()


def test_stop_interrupts_a_subscription_that_is_waited_for(master, stage, eventually):
    master.on_subscribe = lambda exchange: exchange.hold()
    driver = stage.hardened(master.address, timeout=60.0)
    eventually(lambda: master.subscribes)
    driver.stop()
    driver.join(5)
    assert not driver._subscriber.thread.is_alive()


def test_a_framework_that_changes_subscribes_anew_at_once_under_its_id(master, stage, eventually):
    driver = stage.registered(master.address, framework={"name": "t", "capabilities": []})
    changed = {"name": "t", "capabilities": [{"type": "GPU_RESOURCES"}]}
    driver.change_framework(changed)
    eventually(lambda: driver.sched.of("reregistered"))
    again = master.subscribes[1]["subscribe"]["framework_info"]
    assert again == {**changed, "id": {"value": driver.framework_id}}
    assert len(driver.sched.of("disconnected")) == 1
