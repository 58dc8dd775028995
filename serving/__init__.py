"""The ways in: LangGraph server, HTTP, web page and terminal."""
