"""The part of a local DC/OS that its starter brings along: it knows the packages that run there.

``dcos`` hands it to Marathon and Cosmos. All else of a DC/OS is here, whatever the packages are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from embedded_mesos import Credential

if TYPE_CHECKING:
    from local_dcos.marathon.app_definition import App

Json = dict[str, Any]
#: Gives status and body of a GET of a service's API; None when it does not answer.
Ask = Callable[[str], "tuple[int, bytes] | None"]


class Driver(Protocol):
    """What Marathon needs of a scheduler driver: the interface of pymesos, as far as it goes.

    It subscribes again whenever the subscription is lost.
    """

    #: What of all agents is offered (Mesos: ``OfferConstraints``).
    offer_constraints: Json | None

    @property
    def connected(self) -> bool:
        """Say whether there is a subscription."""

    def start(self) -> object:
        """Subscribe; returns at once."""

    def stop(self) -> object:
        """Go away, and leave the tasks."""

    def join(self, seconds: float) -> object:
        """Wait for the end of its threads."""

    def acceptOffers(
        self, offers: Sequence[Json], operations: Sequence[Json], filters: Json
    ) -> object:
        """Use offers."""

    def declineOffer(self, offers: Sequence[Json], filters: Json) -> object:
        """Give offers back."""

    def reviveOffers(self) -> object:
        """Let everything be offered again."""

    def killTask(self, task_id: Json) -> object:
        """Ask for a task's end."""

    def acknowledgeStatusUpdate(self, status: Json) -> object:
        """Let Mesos forget an update."""

    def reconcileTasks(self, tasks: Sequence[Json]) -> object:
        """Ask for the state of tasks."""


@dataclass(frozen=True)
class Place:
    """Where an app runs, and what lets it in there."""

    master: str
    #: Where it may keep its state.
    folder: Path
    #: With a file for each secret.
    secrets: Path
    #: The Python interpreters of this machine for apps, by the version that they ask for.
    pythons: Mapping[str, str]
    #: The principal of the master's callers; empty where it asks for none.
    principal: str
    #: The file with principal and secret; None where the master asks for none.
    credential: Path | None
    #: The file with the token that clients of the app's own API are let in with.
    api_token: Path


class Integration(Protocol):
    """See the module."""

    #: What a call of the driver raises when it has failed.
    call_error: type[Exception]

    def driver(
        self, scheduler: object, framework: Json, master: str, credential: Credential
    ) -> Driver:
        """Return Marathon's connection to Mesos; ``scheduler`` has the methods of pymesos'."""

    def variables(self, app: App, place: Place) -> Mapping[str, str]:
        """Return environment variables over the app's own: what it cannot know of this machine."""

    def options_in_force(self, stored: Json, ask: Ask) -> Json:
        """Return the options that a service has, given those that its package was last given."""
