"""Which address of this machine lies in the network that peers are to use.

``main`` asks before anything of the job starts, where ``cluster_spec.peer_network`` names a network
or an interface; it reports the address to the scheduler, which puts it into the ClusterSpec.
Nothing is sent: the kernel's routes and the table of interfaces are read.
"""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct

_SIOCGIFADDR = 0x8915
#: The interfaces' addresses by IPv6 (proc(5)): address, index, prefix length, scope, flags, name.
_ADDRESSES_6 = "/proc/net/if_inet6"
_GLOBAL_SCOPE = "00"
_ANY_PORT = 9


class NotInNetwork(Exception):
    """This machine has no address there; the text says what it has instead."""


def of_network(network: str) -> str:
    """Return this machine's address in a network (``10.1.0.0/16``) or at an interface (``ib0``).

    Raises NotInNetwork. At an interface IPv4 goes before IPv6.
    """
    return _in_network(network) if "/" in network else _at_interface(network)


def _in_network(text: str) -> str:
    network = ipaddress.ip_network(text, strict=False)
    family = socket.AF_INET if network.version == 4 else socket.AF_INET6
    there = str(network.network_address + (1 if network.num_addresses > 1 else 0))
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as dial:
            # A datagram socket that is connected has sent nothing, and has chosen its own address.
            dial.connect((there, _ANY_PORT))
            own = str(dial.getsockname()[0])
    except OSError as error:
        raise NotInNetwork(
            f"this machine has no route to {text}: {error.strerror or error}"
        ) from error
    if ipaddress.ip_address(own) not in network:
        raise NotInNetwork(f"no address of this machine is in {text}: it goes there from {own}")
    return own


def _at_interface(name: str) -> str:
    names = [known for _, known in socket.if_nameindex()]
    if name not in names:
        raise NotInNetwork(f"this machine has no interface {name}; it has {', '.join(names)}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            found = fcntl.ioctl(asked, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            return socket.inet_ntoa(found[20:24])
        except OSError:
            pass
    try:
        with open(_ADDRESSES_6) as table:
            rows = [line.split() for line in table]
    except OSError:
        rows = []
    for row in rows:
        if row[5] == name and row[3] == _GLOBAL_SCOPE:
            return str(ipaddress.IPv6Address(bytes.fromhex(row[0])))
    raise NotInNetwork(f"the interface {name} of this machine has no address")
