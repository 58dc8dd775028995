"""Builds the chosen model. Imports LangChain's packages, which takes seconds."""

from chatbot.models.endpoints import Endpoint, ModelChoice
from chatbot.models.openai_compatible import OpenAICompatibleModel
from chatbot.models.other_providers import OtherProviderModel, open_other_provider
from chatbot.models.pool import Member, ModelPool
from chatbot.models.time_limits import TimeLimits
from chatbot.settings import Settings


def build(choice: ModelChoice, settings: Settings) -> ModelPool:
    """Return the pool of the chosen endpoints, which may be a single one.

    Raises:
        ConfigurationError: A package or a key is missing.
    """
    limits = TimeLimits(
        first_token=settings.first_token_timeout_seconds,
        between_tokens=settings.token_timeout_seconds,
        total=settings.turn_timeout_seconds,
    )
    members = [
        Member(endpoint, _build_endpoint(endpoint, limits, settings))
        for endpoint in choice.endpoints
    ]
    return ModelPool.of(members, limits, output_tokens=settings.output_tokens)


def _build_endpoint(
    endpoint: Endpoint, limits: TimeLimits, settings: Settings
) -> OpenAICompatibleModel | OtherProviderModel:
    if not endpoint.openai_compatible:
        return open_other_provider(endpoint, limits, settings)
    return OpenAICompatibleModel(
        model=endpoint.model,
        base_url=endpoint.base_url,
        api_key=endpoint.api_key,
        temperature=settings.llm_temperature,
        max_tokens=settings.output_tokens,
        max_retries=0,
        stream_usage=True,
        stream_chunk_timeout=None,
        use_responses_api=False,
        limits=limits,
        provider=endpoint.provider,
        label=endpoint.label,
        can_stream=endpoint.streaming,
        reasoning_opened=endpoint.reasoning_opened,
    )
