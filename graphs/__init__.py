"""The state machine that answers one question at a time."""
