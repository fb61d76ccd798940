"""Where in the store each part of a service's state is. Paths are below the service's root.

The layout of format 3. ``Tasks`` and ``Configurations`` are where the DC/OS SDK has them; a gang
has a folder of its own.
"""

from __future__ import annotations

from zlib import crc32

FRAMEWORK_ID = "FrameworkID"
CONFIG_TARGET = "ConfigTarget"
CONFIGURATIONS = "Configurations"
#: The options that configurations were made of: for people, the core does not read them.
OPTIONS = "Options"
CONTROLS = "Plans"
TASKS = "Tasks"
RESERVATIONS = "Reservations"
GANGS = "Gangs"
UNITS = "UnitPages"
CAPACITY = "Capacity"
#: What belongs to the service and to no gang: how often it launched, maintenance, the uninstall.
SERVICE = "Properties/service"
ABANDONED_PAGES = 32
ABANDONED = "Abandoned"
INSTANCE = "Properties/instance"
TOKEN_KEY = "Properties/token-key"
#: Where the leading scheduler is asked: for clients, the core does not read it.
ADDRESS = "Properties/address"


def service_folder(name: str) -> str:
    """Return a service's name as one segment of a path, here and wherever it names a folder."""
    return name.strip("/").replace("/", "__")


def configuration(identifier: str) -> str:
    """Return where a configuration is."""
    return f"{CONFIGURATIONS}/{identifier}"


def options(identifier: str) -> str:
    """Return where the options are that a configuration was made of."""
    return f"{OPTIONS}/{identifier}"


def task_info(name: str) -> str:
    """Return where that of a task is that does not change after its launch."""
    return f"{TASKS}/{name}/TaskInfo"


def task_status(name: str) -> str:
    """Return where that of a task is that changes."""
    return f"{TASKS}/{name}/TaskStatus"


def job(gang: str) -> str:
    """Return where a gang's job is."""
    return f"{GANGS}/{gang}/Job"


def epoch(gang: str) -> str:
    """Return where a gang's newest ClusterSpec is."""
    return f"{GANGS}/{gang}/Epoch"


def unit(gang: str) -> str:
    """Return where it is said which unit of work a slot runs."""
    return f"{GANGS}/{gang}/Unit"


def units_given(page: int) -> str:
    """Return where it is said what the units of a page are."""
    return f"{UNITS}/{page:05}/Given"


def units_state(page: int) -> str:
    """Return where it is said what became of the units of a page."""
    return f"{UNITS}/{page:05}/State"


def abandoned(task_id: str) -> str:
    """Return where it is said of an attempt that it was given up: with others, for there may be
    as many as there are tasks."""
    return f"{ABANDONED}/{crc32(task_id.encode()) % ABANDONED_PAGES:02}"


def capacity(key: str) -> str:
    """Return where a record of the ledger of machines is."""
    return f"{CAPACITY}/{key}"


def reservation(resource_id: str) -> str:
    """Return where a reservation is."""
    return f"{RESERVATIONS}/{resource_id}"
