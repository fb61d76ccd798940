"""A service for the command line to ask: a real API over a state that the test sets.

Used by the tests of commands that ask and steer; nothing of a cluster runs.
"""

import threading
from collections.abc import Callable

from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.callers.access import Access
from dcos_tensorflow.api.server import ApiServer
from dcos_tensorflow.core.model.events import Event
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.options import load, service_spec
from samples.state_source import Source
from samples.states import running

TOKEN = "a-token"
OPTIONS = {
    "service": {"name": "tensorflow", "job_url": "http://host/job.zip", "job_name": "mnist"},
    "worker": {"count": 2},
    "parameter_server": {"count": 1},
}
SPEC = service_spec(load(OPTIONS))


class Service(Source):
    """A state behind a real API that asks for a token; events are kept for the test."""

    def __init__(self, token: str = TOKEN) -> None:
        super().__init__(state=running())
        self.options = OPTIONS
        self._token = token
        #: Told how often the state was asked for.
        self.on_look: Callable[[int], None] = lambda looks: None
        self._looks = 0
        #: The state from the first event on.
        self.afterwards: ServiceState | None = None
        self.on_event: Callable[[], None] = lambda: None
        self.server = ApiServer(create_app(self, access=Access(token)))
        self.leaving = threading.Thread(target=self._leave)
        #: What becomes of the service once it has stopped serving.
        self.once_gone: Callable[[], None] = lambda: None

    def leave(self) -> None:
        """Stop serving, once the request under way has its answer."""
        self.leaving.start()

    def come_back(self) -> str:
        """Serve again, as a scheduler that was started again does; return where."""
        self.server = ApiServer(create_app(self, access=Access(self._token)))
        return self.server.start()

    def end(self) -> None:
        """Stop serving at the end of a test."""
        if self.leaving.ident is not None:
            self.leaving.join()
        self.server.stop()

    def _leave(self) -> None:
        self.server.stop()
        self.once_gone()

    def state(self) -> ServiceState | None:
        self._looks += 1
        self.on_look(self._looks)
        return self.current

    def submit(self, event: Event) -> None:
        super().submit(event)
        self.current = self.afterwards or self.current
        self.on_event()
