"""What LangGraph's server asks of the graph in every run."""

import time

from langgraph.graph.state import CompiledStateGraph

from chatbot.history.local import LocalChatHistory
from chatbot.ports import Ports
from graphs.chat import ChatGraph, build_graph
from tests.ports import InMemoryKnowledgeBase, ScriptedChatModel


def graph_of_nothing() -> ChatGraph:
    ports = Ports(
        history=LocalChatHistory(":memory:"),
        knowledge=InMemoryKnowledgeBase(),
        model=ScriptedChatModel(),
    )
    return build_graph(ports).with_config(configurable={"a": 1})


def test_the_form_of_the_context_is_langgraphs_and_nobody_changes_it() -> None:
    graph = graph_of_nothing()
    theirs = CompiledStateGraph.get_context_jsonschema(graph)
    for _ in range(2):
        form = graph.get_context_jsonschema()
        assert form == theirs
        assert form is not None
        form.clear()


def test_the_form_is_not_made_anew() -> None:
    graph = graph_of_nothing()
    graph.get_context_jsonschema()
    start = time.process_time()
    CompiledStateGraph.get_context_jsonschema(graph)
    middle = time.process_time()
    graph.get_context_jsonschema()
    assert time.process_time() - middle < middle - start
