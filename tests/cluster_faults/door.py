"""The door for faults of a cluster in another process: ``Faults`` over HTTP.

``python -m cluster_faults`` opens it, on a port of its own, so that it answers whatever becomes of
the master. ``order`` is the other side::

    GET  /faults   200 {"<fault>": "<its arguments>", ...}
    POST /faults   {"fault": "crash_agent", "arguments": {"agent": 0}}
                   200 {"result": ...}   400 {"message": "why not"}
"""

import inspect
import json
import urllib.request
from typing import Any

from cluster_faults.agents import FaultError
from cluster_faults.faults import Faults
from embedded_mesos.wire.http_server import Handler, Server

PATH = "/faults"


def make_server(address: tuple[str, int], faults: Faults) -> Server:
    """Return a server that is not started yet.

    Raises:
        OSError: the address cannot be had.
    """
    return Server(address, type("FaultsHandler", (_FaultsHandler,), {"faults": faults}))


def order(address: str, fault: str, **arguments: Any) -> Any:
    """Order a fault from another process; return its result.

    Raises:
        ValueError: it was refused; the text says why.
        OSError: no process answers at ``address`` (``host:port``).
    """
    body = json.dumps({"fault": fault, "arguments": arguments}).encode()
    request = urllib.request.Request(f"http://{address}{PATH}", body, method="POST")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Answers())
    with opener.open(request, timeout=60) as response:
        answer = json.load(response)
    if response.status != 200:
        raise ValueError(f"{fault}: {answer['message']}")
    return answer["result"]


class _Answers(urllib.request.HTTPErrorProcessor):
    """Takes every status as an answer."""

    def http_response(self, _request: Any, response: Any) -> Any:
        return response


class _FaultsHandler(Handler):
    faults: Faults

    def do_GET(self) -> None:
        if self.path == PATH:
            known = {name: str(inspect.signature(method)) for name, method in self._known().items()}
            self.answer_json(known)
        else:
            self.answer(404)

    def do_POST(self) -> None:
        if self.path != PATH:
            self.answer(404)
            return
        try:
            result = self._order(json.loads(self.body()))
        except IndexError:
            self.answer_json({"message": "there is no such agent"}, 400)
            return
        except (FaultError, ValueError, TypeError, KeyError, OSError) as error:
            self.answer_json({"message": str(error) or repr(error)}, 400)
            return
        self.answer_json({"result": result})

    def _known(self) -> dict[str, Any]:
        return {
            name: getattr(self.faults, name)
            for name in dir(self.faults)
            if not name.startswith("_")
        }

    def _order(self, wanted: Any) -> Any:
        known = self._known()
        if wanted["fault"] not in known:
            raise ValueError(f"no fault {wanted['fault']!r}; there are {', '.join(known)}")
        method = known[wanted["fault"]]
        arguments = wanted.get("arguments", {})
        inspect.signature(method).bind(**arguments)
        return method(**arguments)
