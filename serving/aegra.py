"""What `aegra.json` names: the graph of `serving.langgraph`.

aegra loads a graph's file by its path. Loaded so, `serving.langgraph` would be there twice, and
the second one's app is never opened.
"""

from serving.langgraph import chat

__all__ = ["chat"]
