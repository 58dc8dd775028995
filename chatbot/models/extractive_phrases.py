"""What the extractive model says around its quotations, in Chinese and in English."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chatbot.text import Language


@dataclass(frozen=True, kw_only=True, slots=True)
class Phrases:
    """The sentences of one language."""

    lead: str
    unsure: str
    empty: str
    nearest: str
    unavailable: str
    forbidden: str
    ability: str
    subjects: str
    separator: str
    end: str
    hint: str

    def nothing(self, nearest: Sequence[str]) -> str:
        """Return that nothing was found, naming the documents that come nearest."""
        return self.empty + self._listed(self.nearest, nearest)

    def chat(self, subjects: Sequence[str]) -> str:
        """Return what it can do, naming the subjects that it can be asked about."""
        return self.ability + self._listed(self.subjects, subjects)

    def _listed(self, lead: str, names: Sequence[str]) -> str:
        return f"{lead}{self.separator.join(names)}{self.end}" if names else ""


PHRASES: Mapping[Language, Phrases] = {
    "en": Phrases(
        lead="The knowledge base says:",
        unsure="The knowledge base has no clear answer to this. What comes closest:",
        empty="The knowledge base was searched, but nothing about this was found in it.",
        nearest=" The documents that come closest: ",
        unavailable="The knowledge base could not be reached, so I could not look this up.",
        forbidden="I am not allowed to look this up in the knowledge base.",
        ability="Without a language model I can only quote what the knowledge base says.",
        subjects=" You can ask me about: ",
        separator=", ",
        end=".",
        hint=(
            "*No language model is configured. For written answers, set `LLM_MODEL` with "
            "`DASHSCOPE_API_KEY`, or with `OPENAI_API_KEY` / `OPENAI_BASE_URL`, "
            "in `.env.local`.*"
        ),
    ),
    "zh": Phrases(
        lead="知识库中的相关内容：",
        unsure="知识库中没有明确的答案，最接近的内容是：",
        empty="已经查询知识库，但没有找到与此相关的内容。",
        nearest="最接近的文档：",
        unavailable="暂时无法连接知识库，所以没能查询这个问题。",
        forbidden="没有权限在知识库中查询这个问题。",
        ability="没有语言模型时，我只能引用知识库里的原文。",
        subjects="可以问我这些方面的问题：",
        separator="、",
        end="。",
        hint=(
            "*尚未配置语言模型。如需自然语言回答，请在 `.env.local` 中设置 `LLM_MODEL`，"
            "以及 `DASHSCOPE_API_KEY`，或 `OPENAI_API_KEY` / `OPENAI_BASE_URL`。*"
        ),
    ),
}
