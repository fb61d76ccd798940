"""A tracking server as MLflow's is by its REST API, as far as runs are told to it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from servers.web_server import Handler, served


@dataclass
class ToldRun:
    """A run as the server knows it."""

    experiment: str
    name: str
    tags: dict[str, str]
    status: str = "RUNNING"
    parameters: dict[str, str] = field(default_factory=dict)
    #: Of each metric its step and value, in the order in which they came.
    metrics: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)


@dataclass
class Tracked:
    """What the server was told.

    ``refuses`` is the status that it answers with, 0 for none, and ``why`` what it says then.
    """

    url: str = ""
    runs: dict[str, ToldRun] = field(default_factory=dict)
    experiments: dict[str, str] = field(default_factory=dict)
    logins: set[str] = field(default_factory=set)
    refuses: int = 0
    why: str = "not now"
    asked: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def called(self, name: str) -> ToldRun:
        (run,) = [run for run in self.runs.values() if run.name == name]
        return run

    def answer(self, path: str, body: Any) -> Any:
        """Return what is answered; None where something asked for is not there."""
        if path.startswith("experiments/get-by-name?experiment_name="):
            name = path.partition("=")[2]
            found = self.experiments.get(name)
            return found and {"experiment": {"experiment_id": found, "name": name}}
        if path == "experiments/create":
            self.experiments[body["name"]] = str(len(self.experiments) + 1)
            return {"experiment_id": self.experiments[body["name"]]}
        if path == "runs/search":
            tag, _, value = body["filter"].removeprefix("tags.`").partition("` = ")
            found = [n for n, run in self.runs.items() if run.tags.get(tag) == value.strip("'")]
            return {"runs": [{"info": {"run_id": name}} for name in found[:1]]}
        if path == "runs/create":
            names = {number: name for name, number in self.experiments.items()}
            tags = {each["key"]: each["value"] for each in body["tags"]}
            run = ToldRun(names[body["experiment_id"]], body["run_name"], tags)
            self.runs[f"run{len(self.runs)}"] = run
            return {"run": {"info": {"run_id": f"run{len(self.runs) - 1}"}}}
        run = self.runs[body["run_id"]]
        if path == "runs/log-batch":
            assert len(body["metrics"]) <= 1000
            for each in body["metrics"]:
                run.metrics.setdefault(each["key"], []).append((each["step"], each["value"]))
            run.parameters.update({each["key"]: each["value"] for each in body["params"]})
            run.tags.update({each["key"]: each["value"] for each in body["tags"]})
            return {}
        assert path == "runs/update", path
        run.status = body["status"]
        return {"run_info": {}}


@contextmanager
def tracking_server() -> Iterator[Tracked]:
    """Serve until the end of the block."""
    tracked = Tracked()

    class Api(Handler):
        def do_GET(self) -> None:
            self._told(None)

        def do_POST(self) -> None:
            self._told(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _told(self, body: Any) -> None:
            with tracked.lock:
                tracked.asked += 1
                tracked.logins.add(self.headers.get("Authorization", ""))
                if tracked.refuses:
                    self.answer(tracked.refuses, json.dumps({"message": tracked.why}).encode())
                    return
                found = tracked.answer(self.path.removeprefix("/api/2.0/mlflow/"), body)
            if found is None:
                self.answer(404, b'{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "none"}')
            else:
                self.answer(200, json.dumps(found).encode())

    with served(Api) as address:
        tracked.url = f"http://{address}"
        yield tracked
