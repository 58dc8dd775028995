"""Whom an https connection trusts."""

import ssl
from functools import cache

import certifi


@cache
def tls_context() -> ssl.SSLContext:
    """Trust the system's authorities and certifi's. Reads files: call it in a thread."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
