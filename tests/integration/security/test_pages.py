"""What a page in the operator's browser sends, sent by hand, to everything that listens.

The headers are those that Chromium sends; ``test_pages_in_chromium`` has it send them.
"""

import http.client
from collections.abc import Mapping

import pytest

from .listeners import Listeners, Order, as_operator

EVERY = ("master", "agent", "API", "open API", "local DC/OS", "task runner")
#: A page sends its form as text/plain: no server is asked before whether it may.
PAGES: Mapping[str, Mapping[str, str]] = {
    "another site": {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"},
    "another port": {"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"},
    "an old browser": {"Origin": "http://evil.example"},
    "a sandboxed frame": {"Origin": "null"},
    "a rebound name": {"Host": "evil.example:1", "Sec-Fetch-Site": "same-origin"},
}


def status_of(address: str, order: Order, headers: Mapping[str, str]) -> int:
    client = http.client.HTTPConnection(address, timeout=30)
    sent = {"Content-Type": "text/plain", **as_operator(), **headers}
    client.request(order.method, order.path, order.body.encode(), sent)
    try:
        return client.getresponse().status
    finally:
        client.close()


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", EVERY)
def test_a_page_reads_nothing_and_orders_nothing(
    listeners: Listeners, name: str, page: str
) -> None:
    address = listeners.addresses()[name]
    answers = {
        f"{order.method} {order.path}": status_of(address, order, PAGES[page])
        for order in listeners.orders(name)
    }
    assert set(answers.values()) <= {401, 403}, answers
    assert listeners.harm() == []


def test_who_types_the_address_or_follows_a_link_reads_it(listeners: Listeners) -> None:
    link = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    why = Order("GET", "/v1/why")
    for headers in ({"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "cross-site", **link}):
        assert status_of(listeners.open_service.server.address, why, headers) == 200
