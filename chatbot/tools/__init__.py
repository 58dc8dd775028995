"""The tools that a model may call while it answers."""
