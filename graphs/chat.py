"""The nodes and edges of the chatbot."""

from copy import deepcopy
from functools import cache, partial
from typing import Any, Literal

from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import TypeAdapter

from chatbot.ports import Ports
from graphs import nodes
from graphs.keeping import kept
from graphs.responding import respond
from graphs.state import ChatInput, ChatOutput, ChatState, Context

ChatGraph = CompiledStateGraph[ChatState, Context, ChatInput, ChatOutput]


class _Graph(ChatGraph):
    """Makes the form of the context once: LangGraph's server asks for it in every run."""

    def get_context_jsonschema(self) -> dict[str, Any]:
        """See `Pregel.get_context_jsonschema`."""
        return deepcopy(_form_of_context())


@cache
def _form_of_context() -> dict[str, Any]:
    return TypeAdapter(Context).json_schema()


def build_graph(ports: Ports) -> ChatGraph:
    """Hand each node the ports and connect the nodes."""
    graph = StateGraph(
        ChatState,
        context_schema=Context,
        input_schema=ChatInput,
        output_schema=ChatOutput,
    )
    graph.add_node("load_history", partial(nodes.load_history, ports=ports))
    for step in (
        nodes.route,
        nodes.enhance_query,
        respond,
        nodes.retrieve,
        nodes.answer,
        nodes.save_turn,
    ):
        name = step.__name__
        graph.add_node(name, kept(name, partial(step, ports=ports), ports))
    graph.add_edge(START, "load_history")
    graph.add_conditional_edges("load_history", route_after_load_history)
    graph.add_conditional_edges("route", route_after_route)
    graph.add_conditional_edges("enhance_query", route_after_enhance_query)
    graph.add_conditional_edges("respond", route_after_respond)
    graph.add_conditional_edges("retrieve", route_after_retrieve)
    graph.add_conditional_edges("answer", route_after_answer)
    graph.add_conditional_edges("save_turn", route_after_save_turn)
    compiled = graph.compile(name="chatbot")
    compiled.__class__ = _Graph  # `compile` makes no class of ours; `copy` keeps it
    return compiled


# A server may execute a run again from a checkpoint in the middle of a turn. The work on the
# turn is not checkpointed, so such a run begins anew: each edge leads back to the start then.


async def route_after_load_history(state: ChatState) -> Literal["route", "__end__"]:
    """End at once where a run is executed again whose turn was completed."""
    return "__end__" if state.turn is None or state.turn.finished else "route"


async def route_after_route(
    state: ChatState,
) -> Literal["load_history", "enhance_query", "answer"]:
    """Go to the knowledge base only where the route says so."""
    if state.route is None:
        return "load_history"
    return "enhance_query" if state.route.intent == "knowledge_base" else "answer"


async def route_after_enhance_query(
    state: ChatState,
) -> Literal["load_history", "respond", "retrieve"]:
    """Look up what the query asks for, or let the one assistant that is asked answer."""
    if state.turn is None:
        return "load_history"
    return "retrieve" if state.respondent is None else "respond"


async def route_after_respond(
    state: ChatState,
) -> Literal["load_history", "retrieve", "save_turn"]:
    """Keep the turn, or ask the others where the assistant had no answer."""
    if state.turn is None:
        return "load_history"
    return "save_turn" if state.turn.finished else "retrieve"


async def route_after_retrieve(state: ChatState) -> Literal["load_history", "answer"]:
    """Answer from what was found."""
    return "load_history" if state.turn is None else "answer"


async def route_after_answer(state: ChatState) -> Literal["load_history", "save_turn"]:
    """Keep the turn."""
    return "load_history" if state.turn is None else "save_turn"


async def route_after_save_turn(state: ChatState) -> Literal["load_history", "__end__"]:
    """End the turn."""
    return "load_history" if state.turn is None else "__end__"
