"""The state of a bridge's port, by netlink.

A port that is disabled drops everything in both directions while both ends of the cable still see their link up: a
silent failure, as a rule in a switch that drops all traffic of a port. pyroute2 sets a disabled port's link down as
well, hence the message by hand.
"""

import os
import socket
import struct

DISABLED, FORWARDING = 0, 3

_RTM_SETLINK = 19
_REQUEST_ACK = 1 | 4
_AF_BRIDGE = 7
_IFLA_PROTINFO = 12 | 0x8000  # nested
_IFLA_BRPORT_STATE = 1
_NLMSG_ERROR = 2


def set_port_state(index: int, state: int) -> None:
    """Sets the state of the port with device number `index`, in the namespace in which the calling thread is.

    Raises:
        OSError: the kernel refuses it, or does not answer within a second.
    """
    attribute = struct.pack("=HHBxxx", 5, _IFLA_BRPORT_STATE, state)
    body = struct.pack("=BxHiII", _AF_BRIDGE, 0, index, 0, 0)
    body += struct.pack("=HH", 4 + len(attribute), _IFLA_PROTINFO) + attribute
    header = struct.pack("=IHHII", 16 + len(body), _RTM_SETLINK, _REQUEST_ACK, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
        link.settimeout(1.0)
        link.bind((0, 0))
        link.send(header + body)
        answer = link.recv(4096)
    kind, error = struct.unpack_from("=H", answer, 4)[0], struct.unpack_from("=i", answer, 16)[0]
    if kind != _NLMSG_ERROR or error != 0:
        raise OSError(-error, f"state of bridge port {index}: {os.strerror(-error)}")
