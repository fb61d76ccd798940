"""``dashboard serve``: the window in the foreground, for every browser with the operator's token.

It ends with a signal. As the API of a scheduler does it listens beyond this machine only where a
token is asked for, and by TLS where it is given a certificate. A browser that is logged in has
the operator's rights: the window asks the schedulers with that token.
"""

from __future__ import annotations

import secrets
import signal
import threading

from dcos_tensorflow.api.callers.access import Access
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.output import say
from dcos_tensorflow.window.app import Window
from dcos_tensorflow.window.login import Login
from dcos_tensorflow.window.services import Services
from untrusted_input.asgi_server import AsgiServer
from untrusted_input.listening import ServerNotStarted
from untrusted_input.loopback import is_loopback
from untrusted_input.server_tls import ServerTls


def serve(services: Services, host: str, port: int, token: str, tls: ServerTls | None) -> None:
    """Serve until a signal comes. Raises CliError. Without a token a link alone logs in."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    server = AsgiServer("the window", host, port, tls=tls)
    try:
        address = server.bind()
        login = Login(secrets.token_urlsafe(32))
        access = Access(token) if token else None
        bound = int(address.rpartition(":")[2])
        window = Window(services, login, bound, access, tls=tls is not None)
        server.serve(window.app(), "window")
    except ServerNotStarted as error:
        raise CliError(f"{error}.") from error
    try:
        where = f"http{'s' * (tls is not None)}://{address}"
        say(f"The window listens on {where}.")
        if is_loopback(host):
            say(f"This link logs one browser in, once: {where}/enter?link={login.new_link()}")
        ended.wait()
    finally:
        server.stop()
        services.stop()
