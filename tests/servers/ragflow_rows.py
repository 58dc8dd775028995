"""The rows of RAGFlow's replies, as its versions write them."""

from collections.abc import Mapping
from typing import Any

from tests.servers.ragflow_knowledge import CREATED, Chat, Dataset, Document

_DEFAULTS: Mapping[str, Any] = {
    "similarity_threshold": 0.2,
    "vector_similarity_weight": 0.3,
    "top_n": 6,
    "rerank_id": "",
}
_RENAMED = {"system": "prompt", "prologue": "opener", "quote": "show_quote"}
_RUNS = {"UNSTART": "0", "RUNNING": "1", "CANCEL": "2", "DONE": "3", "FAIL": "4"}


def chat_row(chat: Chat, version: str, datasets: Mapping[str, Dataset]) -> dict[str, Any]:
    prompt_config = {
        "system": "Answer from {knowledge}",
        "prologue": "Hi!",
        "empty_response": "",
        "quote": True,
        "parameters": [{"key": "knowledge", "optional": False}],
        **chat.prompt_config,
    }
    settings = {**_DEFAULTS, "top_k": 1024, **chat.settings}
    row: dict[str, Any] = {
        "id": chat.id,
        "tenant_id": "6d9a",
        "name": chat.name,
        "description": chat.description,
        "create_time": CREATED,
        "status": "1",
    }
    if version == "0.22":
        weight = settings["vector_similarity_weight"]
        prompt = {_RENAMED.get(key, key): value for key, value in prompt_config.items()}
        prompt["similarity_threshold"] = settings["similarity_threshold"]
        prompt["keywords_similarity_weight"] = None if weight is None else 1 - weight
        prompt["top_n"] = settings["top_n"]
        prompt["rerank_model"] = settings["rerank_id"]
        owned = [datasets[each] for each in chat.dataset_ids if each in datasets]
        nested = [
            {
                "id": each.id,
                "name": each.name,
                "description": each.description,
                "embd_id": each.embedding_model,
            }
            for each in owned
        ]
        return row | {
            "avatar": "",
            "llm": {"model_name": "qwen-plus@Tongyi-Qianwen"},
            "prompt": prompt,
            "top_k": settings["top_k"],
            "datasets": nested,
        }
    return (
        row
        | settings
        | {
            "icon": "",
            "llm_id": "qwen-plus@inst@Tongyi-Qianwen",
            "llm_setting": {},
            "dataset_ids": list(chat.dataset_ids),
            "kb_names": [datasets[each].name for each in chat.dataset_ids if each in datasets],
            "prompt_config": prompt_config,
        }
    )


def dataset_row(dataset: Dataset) -> dict[str, Any]:
    return {
        "id": dataset.id,
        "name": dataset.name,
        "description": dataset.description,
        "embedding_model": dataset.embedding_model,
        "document_count": len(dataset.documents),
        "chunk_count": sum(len(document.chunks) for document in dataset.documents),
        "chunk_method": "naive",
        "create_time": CREATED,
    }


def document_row(dataset: Dataset, document: Document, version: str) -> dict[str, Any]:
    return {
        "id": document.id,
        "name": document.name,
        "dataset_id": dataset.id,
        "run": _RUNS[document.run] if version == "0.22" else document.run,
        "progress": document.progress,
        "progress_msg": document.message,
        "chunk_count": len(document.chunks) if document.run == "DONE" else 0,
        "token_count": 0,
        "size": len(document.blob),
        "create_time": document.created,
        "status": "1",
    }


def chunk_row(
    hit: tuple[float, Dataset, Document, int], *, raw: bool = False, scores: bool = True
) -> dict[str, Any]:
    score, dataset, document, number = hit
    names = (
        ("chunk_id", "content_with_weight", "doc_id", "docnm_kwd", "kb_id")
        if raw
        else ("id", "content", "document_id", "document_keyword", "dataset_id")
    )
    chunk_id = f"{document.id[:12]}{number:04d}"
    values = (chunk_id, document.chunks[number], document.id, document.name, dataset.id)
    box = [number + 1, 71, 540, 88, 120] if document.pages else [number + 1] * 5
    similarity = score if scores else None
    return {
        **dict(zip(names, values, strict=True)),
        "content_ltks": document.chunks[number].lower(),
        "positions": [box],
        "image_id": "",
        "important_keywords": [],
        "similarity": similarity,
        "vector_similarity": similarity,
        "term_similarity": similarity,
    }
