"""An instance metadata service of EC2 (IMDSv2) for tests, on a free loopback port."""

from __future__ import annotations

import time
from types import TracebackType

from servers.web_server import Handler, served

_TOKEN = "a-token"
_TTL = "X-aws-ec2-metadata-token-ttl-seconds"


class MetadataService:
    """Answers what ``facts`` has, by its path below ``/latest/meta-data/``, to who has a token."""

    def __init__(self, facts: dict[str, str] | None = None) -> None:
        self.facts = dict(facts or {})
        #: The facts that were told, by their paths.
        self.told: list[str] = []
        #: Method and path of each request.
        self.requests: list[tuple[str, str]] = []
        service = self

        class Answers(Handler):
            def do_PUT(self) -> None:
                service.requests.append(("PUT", self.path))
                known = self.path == "/latest/api/token" and 1 <= int(self.headers[_TTL]) <= 21600
                self._say(_TOKEN if known else None)

            def do_GET(self) -> None:
                service.requests.append(("GET", self.path))
                if self.headers["X-aws-ec2-metadata-token"] != _TOKEN:
                    self.send_error(401)
                    return
                name = self.path.removeprefix("/latest/meta-data/")
                self._say(service.facts.get(name))
                if name in service.facts:
                    service.told.append(name)

            def _say(self, text: str | None) -> None:
                if text is None:
                    self.send_error(404)
                    return
                self.answer(200, text.encode())

        self._serving = served(Answers)
        self.url = ""

    def interrupt(self, seconds: float = 120.0) -> float:
        """Say that the machine is taken back in so many seconds; return when, in unix seconds."""
        at = int(time.time() + seconds)
        told = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
        self.facts["spot/instance-action"] = f'{{"action": "terminate", "time": "{told}"}}'
        return float(at)

    def __enter__(self) -> MetadataService:
        self.url = f"http://{self._serving.__enter__()}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._serving.__exit__(kind, error, at)
