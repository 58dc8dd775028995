"""The address that a server listens on."""

import ipaddress
import socket

from chatbot.errors import ConfigurationError


def listen(host: str, port: int, instead: str) -> socket.socket:
    """Return a socket bound to the address; `instead` says how to choose another port.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError:
        message = f"{host} is not an address of this machine."
        raise ConfigurationError(message) from None
    bound = socket.socket(family, kind, protocol)
    try:
        # A port that was just left may be taken again; one that is listened on may not.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(2048)
    except OSError as error:
        bound.close()
        raise ConfigurationError(_reason(error, host, port, instead)) from None
    return bound


def address_of(bound: socket.socket) -> str:
    """Return the HTTP address to open for a listening socket."""
    host, port = bound.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def is_local(bound: socket.socket) -> bool:
    """Return whether only this machine can reach the socket."""
    return ipaddress.ip_address(bound.getsockname()[0]).is_loopback


def _reason(error: OSError, host: str, port: int, instead: str) -> str:
    if isinstance(error, PermissionError):
        return f"Port {port} needs more rights than this user has. Choose another: {instead}"
    if not port or error.errno is None:
        return f"Cannot listen on {host}: {error.strerror}."
    in_use = "is taken by another program" if _answers(host, port) else "cannot be used"
    return f"Port {port} on {host} {in_use} ({error.strerror}). Choose another: {instead}"


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False
