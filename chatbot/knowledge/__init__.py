"""Knowledge bases: the adapters of the port `KnowledgeBase`."""
