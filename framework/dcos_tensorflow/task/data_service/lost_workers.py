"""Runs beside the dispatcher: finishes the reading of data workers that are lost.

``servers`` starts it in the dispatcher's process. TensorFlow never forgets a data worker: its
clients ask one that is gone again and again, and none of their epochs ends before it has come back
under the same address, nor does any later one. So this process acts for it: it asks the
dispatcher, in its name, for its splits, and reports them as done. Splits that it had begun to read
are not read again (TensorFlow's guarantee is at most once when a worker fails). It speaks with
dispatcher and workers as they do with each other, in the few fields of it that are the same in
every version (measured: 2.15 and 2.21), and never with a client.
"""

from __future__ import annotations

import importlib
import time
from typing import Any, Dict, Iterator, List, Tuple, Union

#: A worker that does not answer for so long is lost; one that starts again in its place may take
#: nearly as long.
LOST_SECONDS = 15.0
_LOOK_SECONDS = 1.0
_CALL_SECONDS = 3.0
_DISPATCHER, _WORKER = "/tensorflow.data.DispatcherService/", "/tensorflow.data.WorkerService/"
#: Numbers of fields: of requests that name a worker, of its tasks in the answer to a heartbeat, of
#: a task's id in there, of what is told of tasks, and of addresses in a list of workers.
_ADDRESS, _NEW_TASKS, _TASK_ID, _UPDATES, _WORKERS = 1, 1, 4, 2, 1
_NUMBER, _BYTES = 0, 2


def look_after(port: int) -> None:
    """Look after the workers of the dispatcher at a port of this machine, for ever."""
    try:
        grpc = importlib.import_module("grpc")
    except ImportError as error:
        print(f"task-runner: data workers that are lost are waited for: {error}", flush=True)
        return
    dispatcher = _Speaker(grpc, f"127.0.0.1:{port}")
    workers: Dict[str, _Speaker] = {}
    heard: Dict[str, float] = {}
    told = set()
    while True:
        time.sleep(_LOOK_SECONDS)
        try:
            known = list(_workers(dispatcher.ask(_DISPATCHER + "GetWorkers", b"")))
            for address in known:
                worker = workers.setdefault(address, _Speaker(grpc, address))
                now = time.monotonic()
                if worker.answers():
                    heard[address] = now
                    told.discard(address)
                elif now - heard.setdefault(address, now) >= LOST_SECONDS:
                    if address not in told:
                        print(f"task-runner: the data worker at {address} is lost", flush=True)
                        told.add(address)
                    _finish(dispatcher, address)
        except grpc.RpcError as error:
            print(f"task-runner: looking after data workers: {error.code()}", flush=True)


class _Speaker:
    def __init__(self, grpc: Any, address: str) -> None:
        self._error = grpc.RpcError
        options = [("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0)]
        self._channel = grpc.insecure_channel(address, options=options)

    def ask(self, method: str, request: bytes) -> bytes:
        """Return the answer to a request. Raises grpc.RpcError."""
        answer: bytes = self._channel.unary_unary(method)(request, timeout=_CALL_SECONDS)
        return answer

    def answers(self) -> bool:
        try:
            self.ask(_WORKER + "GetWorkerTasks", b"")
        except self._error:
            return False
        return True


def _finish(dispatcher: _Speaker, address: str) -> None:
    """Say that a worker has done all that it was given."""
    name = _field(_ADDRESS, address.encode())
    given = dispatcher.ask(_DISPATCHER + "WorkerHeartbeat", name)
    updates = b""
    for task in _messages(given, _NEW_TASKS):
        for number, task_id in _fields(task):
            if number == _TASK_ID and isinstance(task_id, int):
                updates += _field(_UPDATES, b"\x08" + _varint(task_id) + b"\x10\x01")
    if updates:
        dispatcher.ask(_DISPATCHER + "WorkerUpdate", name + updates)


def _workers(answer: bytes) -> Iterator[str]:
    for worker in _messages(answer, _WORKERS):
        for address in _messages(worker, _ADDRESS):
            yield address.decode()


def _messages(message: bytes, wanted: int) -> List[bytes]:
    """Return what is in the fields of a number that hold bytes."""
    return [v for number, v in _fields(message) if number == wanted and isinstance(v, bytes)]


def _fields(message: bytes) -> Iterator[Tuple[int, Union[int, bytes]]]:
    """Yield number and value of the fields of a message: numbers, and what has a length."""
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        kind = tag & 7
        if kind not in (_NUMBER, _BYTES):
            # None of TensorFlow's messages that are read here has others.
            return
        value, at = _number(message, at)
        if kind == _NUMBER:
            yield tag >> 3, value
        else:
            yield tag >> 3, message[at : at + value]
            at += value


def _number(message: bytes, at: int) -> Tuple[int, int]:
    """Return the number at a place (protobuf: varint), and where it ends."""
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            break
    return value, at


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found, value = found + bytes((value & 127 | 128,)), value >> 7
    return found + bytes((value,))


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content
