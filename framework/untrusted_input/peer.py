"""Whose process is at the other end of a connection of this machine.

Used by servers on loopback that let in the processes of one user. The kernel says so: every TCP
socket has an owner, and it finds the one of two addresses at once (sock_diag(7)). It is asked for
each request of a client that has to be told apart, so that it must cost nothing: the kernel takes
milliseconds to write its table (``/proc/net/tcp``), which is read only where it answers no such
question. Nothing is sent over the network, and no other service is asked.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
import sys
from pathlib import Path

Address = tuple[str, int]

#: Sockets of IPv6 may be connected to addresses of IPv4, and stand in their own table then.
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_MAPPED = "0000000000000000FFFF0000"
#: A socket that its process has closed is in another state, and its owner not known any more.
_ESTABLISHED = 1

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h.
_SOCK_DIAG, _BY_FAMILY, _ERROR, _REQUEST = 4, 20, 2, 1
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBxI")
#: Ports and addresses of this end and the other, in the network's order.
_ENDS = struct.Struct("!HH4s12x4s12x")
#: Any interface, any cookie.
_ANY = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
#: Of the answer: its state, and behind timer, ends, and three numbers its owner.
_ANSWER = struct.Struct("=xBxx48x12xI")


def owner_of_peer(client: Address, server: Address) -> int | None:
    """Return the user id of the client that connected from ``client``; None when it is not known.

    Both are addresses of IPv4 with their ports.
    """
    ends = tuple((ipaddress.IPv4Address(host), port) for host, port in (client, server))
    try:
        return _owner_by_question(*ends)
    except OSError:
        return _owner_in_tables(*ends)


def _owner_by_question(
    client: tuple[ipaddress.IPv4Address, int], server: tuple[ipaddress.IPv4Address, int]
) -> int | None:
    """Ask the kernel for the socket. Raises OSError where it knows of none."""
    (host, port), (other_host, other_port) = client, server
    question = _QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0xFFFFFFFF)
    question += _ENDS.pack(port, other_port, host.packed, other_host.packed) + _ANY
    header = _HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.sendall(header + question)
        answer = kernel.recv(4096)
    _, kind, *_ = _HEADER.unpack_from(answer)
    if kind == _ERROR:
        # No such socket, or no part of this kernel that could tell.
        (number,) = struct.unpack_from("=i", answer, _HEADER.size)
        raise OSError(-number, "the kernel tells of no socket")
    state, owner = _ANSWER.unpack_from(answer, _HEADER.size)
    return int(owner) if state == _ESTABLISHED else None


def _owner_in_tables(
    client: tuple[ipaddress.IPv4Address, int], server: tuple[ipaddress.IPv4Address, int]
) -> int | None:
    ends = (_written(*client), _written(*server))
    wanted = {ends, (_MAPPED + ends[0], _MAPPED + ends[1])}
    for table in _TABLES:
        with contextlib.suppress(OSError):
            for line in table.read_text(encoding="ascii").splitlines()[1:]:
                _, local, remote, state, _, _, _, uid, *_ = line.split()
                if (local, remote) in wanted and int(state, 16) == _ESTABLISHED:
                    return int(uid)
    return None


def _written(host: ipaddress.IPv4Address, port: int) -> str:
    """Return an address as the kernel writes it: in the order of this machine's bytes."""
    return f"{int.from_bytes(host.packed, sys.byteorder):08X}:{port:04X}"
