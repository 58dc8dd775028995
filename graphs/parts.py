"""What a chatbot is built on, as programs look at it: knowledge, images, model, health."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from chatbot.domain import Assistant, Findings, SourceFile
from chatbot.domain import permitted as those_permitted
from chatbot.images.image import Image, is_name
from chatbot.images.policy import ImagePolicy
from graphs.reviews import Reviews
from graphs.sessions import user_of


class Parts(Reviews):
    """What can be asked of the parts without a turn."""

    @property
    def model_name(self) -> str:
        """The name of the model that answers, or of its kind."""
        model = self._ports.model
        if endpoints := getattr(model, "endpoints", ()):
            return ", ".join(dict.fromkeys(endpoint.model for endpoint in endpoints))
        named = model._identifying_params.get("model_name")  # noqa: SLF001 - LangChain's way to tell
        return str(named or model._llm_type)  # noqa: SLF001 - as above

    async def assistants(
        self, *, permitted: Collection[str] | None = None
    ) -> Sequence[Assistant]:
        """Return the parts of the knowledge that can be asked, by name if any are named.

        Raises:
            KnowledgeBaseError: The list could not be read.
        """
        return those_permitted(await self._ports.knowledge.assistants(), permitted)

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int = 6
    ) -> Findings:
        """Return the passages about the query, without asking any model.

        Raises:
            KnowledgeBaseError: None of the assistants could be asked.
        """
        return await self._ports.knowledge.search(query, assistants=assistants, limit=limit)

    async def document(
        self, document_id: str, *, permitted: Collection[str] | None = None
    ) -> SourceFile | None:
        """Return the file behind a citation, or nothing if no permitted assistant has it.

        Raises:
            KnowledgeBaseError: The file could not be read.
        """
        assistants = await self.assistants(permitted=permitted)
        return await self._ports.knowledge.document(document_id, assistants=assistants)

    async def health(self) -> dict[str, str]:
        """Return, for each part that is degraded now, the reason."""
        found = {
            "history": await self._ports.history.check(),
            "knowledge": await self._ports.knowledge.check(),
        }
        endpoints = self.endpoints()
        if endpoints and not any(each["state"] == "ready" for each in endpoints):
            found["model"] = "Every endpoint of the model has failed lately and rests."
        missing = self._ports.tool_servers.missing if self._ports.tool_servers else {}
        found["tools"] = " ".join(
            f"The tools of {name} cannot be used: {reason}." for name, reason in missing.items()
        )
        return {part: reason for part, reason in found.items() if reason}

    def endpoints(self) -> list[dict[str, Any]]:
        """Return how each endpoint of the model does; see `EndpointState`."""
        states = getattr(self._ports.model, "states", None)
        return [] if states is None else [asdict(state) for state in states()]

    @property
    def image_policy(self) -> ImagePolicy:
        """Which images a question may have."""
        return self._ports.image_policy

    @property
    def sees_images(self) -> bool:
        """Whether a question may have images at all: an endpoint of the model reads them."""
        return self._ports.sees_images

    async def image(self, name: str, *, user_id: str | None = None) -> Image | None:
        """Return an image of a question or an answer of the user, while it is kept.

        Raises:
            HistoryError: It could not be looked for.
        """
        if self._ports.images is None or not is_name(name):
            return None
        return await self._ports.images.find_image(user_of(user_id), name)
