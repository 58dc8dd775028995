"""The nodes and edges of the chatbot."""

from functools import partial
from typing import Literal

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from chatbot.ports import Ports
from graphs import nodes
from graphs.keeping import kept, running
from graphs.state import ChatInput, ChatOutput, ChatState, Context

ChatGraph = CompiledStateGraph[ChatState, Context, ChatInput, ChatOutput]


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
        nodes.retrieve,
        nodes.answer,
        nodes.save_turn,
    ):
        name = step.__name__
        graph.add_node(name, kept(name, partial(step, ports=ports), ports.history))
    graph.add_edge(START, "load_history")
    graph.add_conditional_edges("load_history", route_after_load_history)
    graph.add_conditional_edges("route", route_after_route)
    graph.add_edge("enhance_query", "retrieve")
    graph.add_edge("retrieve", "answer")
    graph.add_edge("answer", "save_turn")
    graph.add_edge("save_turn", END)
    return graph.compile(name="chatbot")


def route_after_load_history(state: ChatState) -> Literal["route", "__end__"]:
    """End at once where a run is executed again whose turn was completed."""
    return "__end__" if running(state).finished else "route"


def route_after_route(state: ChatState) -> Literal["enhance_query", "answer"]:
    """Go to the knowledge base only where the route says so."""
    needed = state.route is not None and state.route.intent == "knowledge_base"
    return "enhance_query" if needed else "answer"
