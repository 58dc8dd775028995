"""Traces of turns for LangSmith: without secrets, and never in a turn's way."""
