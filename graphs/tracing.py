"""Describes the turn in its LangSmith trace, where there is one."""

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.tracers.langchain import LangChainTracer
from langgraph.config import get_config
from langsmith.run_helpers import get_current_run_tree


def describe_trace(**facts: object) -> str:
    """Add facts to the metadata of the trace's root and of this step; return the trace's id.

    Returns "" when nothing is traced. The root is reached through the tracer, because the run
    tree of a step does not know its parent.
    """
    step = get_current_run_tree()
    if step is None:
        return ""
    step.add_metadata(facts)
    callbacks = get_config().get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        for handler in callbacks.handlers:
            if isinstance(handler, LangChainTracer):
                root = handler.run_map.get(str(step.trace_id))
                if root is not None:
                    root.add_metadata(facts)
    return str(step.trace_id)
