"""Requests and answers in the shape of OpenAI's chat and text completions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_OUTPUT_TOKENS = 131_072
DEFAULT_OUTPUT_TOKENS = 128
CHARACTERS_PER_TOKEN = 4
WORD = " token"


class BadRequest(Exception):
    """One sentence for the client, the field it is about, and the HTTP status."""

    def __init__(self, message: str, *, param: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.status = status

    def document(self) -> dict[str, Any]:
        kind = "NotFoundError" if self.status == 404 else "BadRequestError" if self.status < 500 else "ServiceUnavailable"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.status}}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """`limited`: the client set the length, so the answer ends with `length`; else with `stop`."""

    chat: bool
    stream: bool
    include_usage: bool
    prompt_tokens: int
    output_tokens: int
    limited: bool


def read_request(body: bytes, *, chat: bool, model: str) -> CompletionRequest:
    """Check a body; BadRequest names the first field that is wrong."""
    document = _document(body)
    _check_model(document.get("model"), model)
    if document.get("n", 1) != 1:
        raise BadRequest("n must be 1.", param="n")
    prompt = _messages_text(document.get("messages")) if chat else document.get("prompt")
    limit = _output_limit(document)
    return CompletionRequest(
        chat=chat,
        stream=_flag(document, "stream"),
        include_usage=_flag(_object(document, "stream_options"), "include_usage"),
        prompt_tokens=_token_count(prompt),
        output_tokens=DEFAULT_OUTPUT_TOKENS if limit is None else limit,
        limited=limit is not None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequest:
    """A request whose answer has no tokens: embeddings of so many `parts`, or their ranking."""

    parts: int
    prompt_tokens: int


def read_embeddings(body: bytes, *, model: str) -> InputRequest:
    document = _document(body)
    _check_model(document.get("model"), model)
    given = document.get("input")
    texts = given if isinstance(given, list) and given and not isinstance(given[0], int) else [given]
    return InputRequest(parts=len(texts), prompt_tokens=sum(_token_count(text, "input") for text in texts))


def read_rerank(body: bytes, *, model: str) -> InputRequest:
    document = _document(body)
    _check_model(document.get("model"), model)
    texts = document.get("documents")
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise BadRequest("documents must be a list of texts.", param="documents")
    if not isinstance(query := document.get("query"), str):
        raise BadRequest("query must be text.", param="query")
    return InputRequest(parts=len(texts), prompt_tokens=sum(_token_count(text, "documents") for text in [query, *texts]))


def embeddings(asked: InputRequest, model: str) -> dict[str, Any]:
    rows = [{"object": "embedding", "index": index, "embedding": [1.0, 0.0, 0.0, 0.0]} for index in range(asked.parts)]
    return {"object": "list", "model": model, "data": rows, "usage": _input_usage(asked)}


def ranking(asked: InputRequest, model: str) -> dict[str, Any]:
    rows = [{"index": index, "relevance_score": 1 / (index + 1)} for index in range(asked.parts)]
    return {"model": model, "results": rows, "usage": _input_usage(asked)}


def _input_usage(asked: InputRequest) -> dict[str, int]:
    return {"prompt_tokens": asked.prompt_tokens, "total_tokens": asked.prompt_tokens}


class AnswerText:
    """The answer to one request: the same event for every token, built once."""

    def __init__(self, request: CompletionRequest, *, identifier: str, model: str, created: int) -> None:
        self._request = request
        kind = ("chat.completion" if request.chat else "text_completion") + (".chunk" if request.stream and request.chat else "")
        self._head = {"id": identifier, "object": kind, "created": created, "model": model}
        self.token_event = self._event([self._part(WORD, None)])

    def opening(self) -> bytes:
        """What comes before the first token's text: the role, in chat."""
        role = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
        return self._event([role]) if self._request.chat else b""

    def closing(self) -> bytes:
        usage = self._event([], usage=self.usage()) if self._request.include_usage else b""
        return self._event([self._part("", self._finish_reason)]) + usage + b"data: [DONE]\n\n"

    def whole(self) -> dict[str, Any]:
        text = WORD * self._request.output_tokens
        body: dict[str, Any] = {"message": {"role": "assistant", "content": text}} if self._request.chat else {"text": text}
        choice = {"index": 0, **body, "logprobs": None, "finish_reason": self._finish_reason}
        return {**self._head, "choices": [choice], "usage": self.usage()}

    def usage(self) -> dict[str, int]:
        prompt, output = self._request.prompt_tokens, self._request.output_tokens
        return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}

    @property
    def _finish_reason(self) -> str:
        return "length" if self._request.limited else "stop"

    def _part(self, text: str, finish_reason: str | None) -> dict[str, Any]:
        body: dict[str, Any] = {"text": text}
        if self._request.chat:
            body = {"delta": {"content": text} if text else {}}
        return {"index": 0, **body, "logprobs": None, "finish_reason": finish_reason}

    def _event(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        return b"data: " + json.dumps({**self._head, "choices": choices, **more}).encode() + b"\n\n"


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        raise BadRequest("The body is not JSON.") from None
    if not isinstance(document, dict):
        raise BadRequest("The body must be a JSON object.")
    return document


def _check_model(asked: object, model: str) -> None:
    if not isinstance(asked, str):
        raise BadRequest("model must be text.", param="model")
    if asked != model:
        raise BadRequest(f"The model `{asked[:200]}` does not exist.", param="model", status=404)


def _messages_text(messages: object) -> str:
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages must be a list with at least one message.", param="messages")
    return "".join(_message_text(message, index) for index, message in enumerate(messages))


def _message_text(message: object, index: int) -> str:
    path = f"messages[{index}]"
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise BadRequest(f"{path} must be an object with a role.", param=path)
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        return "".join(text for part in content if isinstance(text := part.get("text"), str))
    raise BadRequest(f"{path}.content must be text or a list of parts.", param=f"{path}.content")


def _output_limit(document: dict[str, Any]) -> int | None:
    for field in ("max_completion_tokens", "max_tokens"):
        value = document.get(field)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_OUTPUT_TOKENS:
            raise BadRequest(f"{field} must be a whole number from 1 to {MAX_OUTPUT_TOKENS}.", param=field)
        return value
    return None


def _flag(document: dict[str, Any], field: str) -> bool:
    value = document.get(field)
    if value is not None and not isinstance(value, bool):
        raise BadRequest(f"{field} must be true or false.", param=field)
    return bool(value)


def _object(document: dict[str, Any], field: str) -> dict[str, Any]:
    value = document.get(field)
    if value is not None and not isinstance(value, dict):
        raise BadRequest(f"{field} must be an object.", param=field)
    return value or {}


def _token_count(prompt: object, field: str = "prompt") -> int:
    if isinstance(prompt, str):
        return max(1, len(prompt) // CHARACTERS_PER_TOKEN)
    if isinstance(prompt, list) and prompt and all(isinstance(token, int) for token in prompt):
        return len(prompt)
    raise BadRequest(f"{field} must be text or a list of token numbers.", param=field)
