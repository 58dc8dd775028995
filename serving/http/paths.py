"""Which paths are ours: other apps may share the server, and keep their own manners."""

from starlette.types import Scope

PREFIXES = ("/api/", "/health/", "/page/", "/v1/")
WHOLE = frozenset({"/", "/health", "/api", "/page", "/v1"})


def path_of(scope: Scope) -> str:
    """Return the path below the place where the app is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")) or "/"


def is_ours(path: str) -> bool:
    """Return whether this app decides about the path."""
    return path in WHOLE or path.startswith(PREFIXES)
