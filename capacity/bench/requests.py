"""The bodies of a sweep's requests (pure but for chance): prompts of about the length asked for, answers of exactly it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from capacity.bench.asked import Api, Asked

PATHS: Final[Mapping[Api, str]] = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "embeddings": "/v1/embeddings",
    "rerank": "/v1/rerank",
}
DOCUMENTS: Final = 8
"""So many documents a request for a ranking has; its input tokens are shared out among them and the query."""
TOKENS_A_WORD: Final = 1.3

_WORDS: Final = """
    able about above across action after again air all almost along among animal answer apple area arm around art ask away baby
    back bad bag ball bank base bear beat bed before begin behind bell best big bird black block blood blow blue board boat body
    bone book born both bottom box boy branch bread break bright bring brother brown build burn bus busy buy cake call camp car
    card care carry case cat catch cause cell center chair chance change charge chart check child choose circle city claim class
    clean clear climb clock close cloud coast coat cold color come common cook cool copy corn corner cost count country course
    cover cow create crop cross crowd cry current cut dance dark day deal dear death decide deep design dog door double down draw
    dream dress drink drive drop dry duck early earth east easy eat edge egg eight end energy enter equal even evening event ever
    exact eye face fact fair fall family far farm fast father fear feed feel field fight figure fill find fine finger finish fire
    first fish five floor flow flower fly follow food foot force forest form forward four free fresh friend front fruit full game
    garden gas gave general gentle girl give glad glass gold good grass gray great green ground group grow guess hair half hand
    happy hard hat head hear heart heat heavy help high hill history hold hole home hope horse hot hour house human hundred
"""
WORDS: Final = tuple(_WORDS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How an endpoint wants to be asked. `pinned`: it takes `ignore_eos` and `min_tokens`, so that every answer has the length
    asked for. `usage`: it takes `stream_options`, and counts its tokens itself."""

    limit: str = "max_tokens"
    pinned: bool = True
    usage: bool = True


FORMS: Final = (Form(), Form(pinned=False), Form(pinned=False, usage=False), Form(limit="max_completion_tokens", pinned=False))
"""From the most to the least; an endpoint gets the first that it does not refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Prompts of random words. The endpoint counts `overhead + tokens_a_word × words` for one of so many words."""

    tokens_a_word: float = TOKENS_A_WORD
    overhead: float = 0.0
    chance: random.Random = field(default_factory=random.Random)

    def words(self, tokens: float) -> int:
        return max(1, round((tokens - self.overhead) / self.tokens_a_word))

    def text(self, tokens: float) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.words(tokens)))

    def fitted(self, short: tuple[int, int], long: tuple[int, int]) -> Prompts:
        """By two prompts, each (words, tokens as the endpoint counted them); as it was where they make no line upwards."""
        words, tokens = long[0] - short[0], long[1] - short[1]
        if words <= 0 or tokens <= 0:
            return self
        slope = tokens / words
        return Prompts(tokens_a_word=slope, overhead=max(0.0, short[1] - slope * short[0]), chance=self.chance)


def body(asked: Asked, form: Form, prompts: Prompts, *, input_tokens: int, output_tokens: int) -> bytes:
    """One request as JSON."""
    return json.dumps(
        {"model": asked.served_name or asked.model, **_content(asked.api, form, prompts, input_tokens, output_tokens)}
    ).encode()


def _content(api: Api, form: Form, prompts: Prompts, input_tokens: int, output_tokens: int) -> dict[str, Any]:
    if api == "embeddings":
        return {"input": prompts.text(input_tokens)}
    if api == "rerank":
        query, *documents = shared_out(prompts.text(input_tokens).split(), DOCUMENTS + 1)
        return {"query": query, "documents": documents}
    text = prompts.text(input_tokens)
    prompt = {"messages": [{"role": "user", "content": text}]} if api == "chat" else {"prompt": text}
    return {**prompt, "stream": True, **_length(form, output_tokens)}


def shared_out(words: Sequence[str], parts: int) -> list[str]:
    """The words in so many texts of about one length, none of them empty."""
    return [" ".join(words[part::parts] or words[:1]) for part in range(parts)]


def _length(form: Form, output_tokens: int) -> dict[str, Any]:
    pinned = {"ignore_eos": True, "min_tokens": output_tokens} if form.pinned else {}
    usage = {"stream_options": {"include_usage": True}} if form.usage else {}
    return {form.limit: output_tokens, **pinned, **usage}
