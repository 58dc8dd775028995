"""The HTTP routes, as one FastAPI app that runs alone or inside the LangGraph server."""

from serving.http.app import create_app

__all__ = ["create_app"]
