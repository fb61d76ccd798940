"""The classes of an end, set by ``exit_analysis`` and ``watchdog``; retries are counted by them."""

from __future__ import annotations

from enum import Enum

from dcos_tensorflow.core import contract


class ExitClass(str, Enum):
    """What kind of end it was; the scheduler's retry rules go by it."""

    SUCCESS = "success"
    USER_ERROR = contract.EXIT_CLASS_USER_ERROR
    JOB_UNUSABLE = "job_unusable"
    PORT_TAKEN = "port_taken"
    PEER_LOST = contract.EXIT_CLASS_PEER_LOST
    OUT_OF_MEMORY = contract.EXIT_CLASS_OUT_OF_MEMORY
    INTERRUPTED = contract.EXIT_CLASS_INTERRUPTED
    CHECKPOINTED = contract.EXIT_CLASS_CHECKPOINTED
    FROZEN = contract.EXIT_CLASS_FROZEN
    STALLED = contract.EXIT_CLASS_STALLED
    CHECKPOINT_MISMATCH = contract.EXIT_CLASS_CHECKPOINT_MISMATCH
    STORAGE = contract.EXIT_CLASS_STORAGE
    STORAGE_REFUSED = contract.EXIT_CLASS_STORAGE_REFUSED
