"""Opens what the settings say about the embedded knowledge base."""

from hashlib import sha256

from chatbot.errors import ConfigurationError
from chatbot.knowledge.local.embedding import Embedder
from chatbot.knowledge.local.similarity import Similarity
from chatbot.knowledge.local.vectors import VectorStore
from chatbot.settings import Settings


def embedder_of(settings: Settings) -> Embedder | None:
    """Return the endpoint for embeddings, where the settings name one.

    Raises:
        ConfigurationError: Its address or its model is missing.
    """
    address, model, key = (
        settings.embedding_base_url,
        settings.embedding_model,
        settings.embedding_api_key,
    )
    if address is None and model is None:
        return None
    if address is None or model is None:
        missing = "EMBEDDING_BASE_URL" if address is None else "EMBEDDING_MODEL"
        message = f"{missing} is missing: embeddings need both an address and a model."
        raise ConfigurationError(message)
    from chatbot.models.endpoint_client import EndpointClient  # noqa: PLC0415 - only here needed

    secret = "" if key is None else key.get_secret_value()
    client = EndpointClient(address, api_key=secret, name=f"{model} for embeddings")
    return Embedder(client, model)


def similarity_of(settings: Settings) -> Similarity | None:
    """Return the search by meaning, where the settings name an endpoint for embeddings.

    Raises:
        ConfigurationError: Its address or its model is missing.
    """
    embedder = embedder_of(settings)
    if embedder is None:
        return None
    documents = settings.path(settings.knowledge_dir)
    source = f"{settings.embedding_base_url}\n{embedder.model}\n{documents}"
    kind = sha256(source.encode(errors="replace")).hexdigest()[:16]
    folder = settings.data_dir
    place = None if folder is None else folder / "knowledge-vectors" / kind
    return Similarity(embedder, VectorStore(place), threshold=settings.embedding_threshold)
