"""Network addresses: how a host name is looked up, and which of them are public."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]

_NAT64 = IPv6Network("64:ff9b::/96")  # an IPv4 address that an IPv6 network hands on


async def look_up(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host.

    Raises:
        OSError: It has none.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError(host) from None
    return [str(address[0]) for *_, address in found]


def is_public(address: str) -> bool:
    """Tell whether an address is of the public internet, also where it holds another one."""
    try:
        found = _held(ip_address(address))
    except ValueError:
        return False
    special = found.is_multicast or found.is_reserved or found.is_unspecified
    if isinstance(found, IPv6Address):
        special |= bool(found.sixtofour or found.teredo) or found.is_site_local
    return found.is_global and not special


def _held(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the address that an IPv6 address only wraps, else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address
