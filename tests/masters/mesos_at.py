"""The files of tasks as who knows a master's address alone reads them."""

from dataclasses import dataclass

from dcos_tensorflow.mesos.address import Address, parse_address
from dcos_tensorflow.mesos.agent_files import AgentFiles, HttpAccess


@dataclass(frozen=True)
class MesosAt:
    """A gateway that has seen no agent yet."""

    master: Address
    access: HttpAccess

    def agent_url(self, agent_id: str) -> str | None:
        return None


def files_at(address: str, access: HttpAccess | None = None) -> AgentFiles:
    """Return the files behind the master at ``address``."""
    return AgentFiles(MesosAt(parse_address(address), access or HttpAccess()))
