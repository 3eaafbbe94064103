"""Before the first level: how the endpoint wants to be asked, how it counts words, how long one request takes, what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from capacity.bench.asked import Asked
from capacity.bench.closed_loop import Send
from capacity.bench.facts import Facts, facts, offered
from capacity.bench.requests import FORMS, PATHS, Form, Prompts, body
from capacity.bench.stream import Answer, Chunks, Fault, ask_stream, ask_whole
from capacity.sources.address import literal_fault
from capacity.sources.answers import base_url

REFUSED: Final = (400, 422)
NOT_FOUND: Final = 404
SHORT_OUTPUT: Final = 4
MANY_TIMES: Final = 8
SPARE_CHUNKS: Final = 1000
"""Some send less than a token at once, and some count otherwise; what sends far more than that was asked for never ends."""


class Unsweepable(Exception):
    """The endpoint cannot be swept: one sentence without secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """`one_seconds`: what a request of the asked lengths took alone. `pinned`, `counts`: the endpoint kept to the length asked
    for, and counted its tokens; some take both wishes and heed neither."""

    form: Form
    pinned: bool
    counts: bool
    prompts: Prompts
    one_seconds: float
    facts: Facts


class Asker:
    """Sends requests of one sweep."""

    def __init__(self, http: aiohttp.ClientSession, asked: Asked) -> None:
        self._http = http
        self._asked = asked
        self.base = base_url(asked.endpoint)
        self._url = self.base + PATHS[asked.api]

    def sends(self, ready: Ready) -> Send:
        """Requests of the asked lengths, each with a prompt of its own unless one prompt was asked for."""
        asked = self._asked
        lengths = {"input_tokens": asked.input_tokens, "output_tokens": asked.output_tokens}
        same = body(asked, ready.form, ready.prompts, **lengths) if asked.same_prompt else None

        async def send(on_chunks: Chunks) -> Answer:
            return await self._send(same or body(asked, ready.form, ready.prompts, **lengths), on_chunks)

        return send

    async def prepare(self) -> Ready:
        """Unsweepable where the endpoint gives no answer that can be timed."""
        if fault := _asked_wrongly(self._asked) or literal_fault(
            urlsplit(self.base).hostname or "", self._asked.allowed_networks
        ):
            raise Unsweepable(fault)
        form, short = await self._negotiate(Prompts())
        prompts, long = await self._calibrate(form, short)
        known = await facts(self._http, self.base, self._asked.allowed_networks)
        return Ready(
            form=form,
            pinned=form.pinned and long.output_tokens == self._asked.output_tokens,
            counts=not long.counted,
            prompts=prompts,
            one_seconds=long.e2e_seconds or 0.0,
            facts=known,
        )

    async def _negotiate(self, prompts: Prompts) -> tuple[Form, Answer]:
        """The first form that is not refused. Of a wrong model or key every form says the same: the first is told."""
        first: Fault | None = None
        for form in FORMS if self._asked.streams else FORMS[:1]:
            answer = await self._ask(form, prompts, self._asked.input_tokens // 2, SHORT_OUTPUT)
            if answer.fault is None:
                return form, answer
            first = first or answer.fault
            if answer.fault.status not in REFUSED:
                break
        raise Unsweepable(await self._with_offers(first) if first else "It was not asked.")

    async def _with_offers(self, fault: Fault) -> str:
        """Of a 404 what the endpoint offers: it may only call the model by another name."""
        names = await offered(self._http, self.base) if fault.status == NOT_FOUND else ()
        asked = self._asked.served_name or self._asked.model
        if not names or asked in names:
            return fault.why
        listed = ", ".join(f"“{name}”" for name in names)
        return f"{fault.why.rstrip('.')}. It offers {listed}: say what it calls the model (served name, --served-name)."

    async def _calibrate(self, form: Form, short: Answer) -> tuple[Prompts, Answer]:
        """By a second prompt, twice as long: two points make the line from words to tokens."""
        prompts = Prompts()
        full = await self._ask(form, prompts, self._asked.input_tokens, self._asked.output_tokens)
        if full.fault is not None:
            raise Unsweepable(full.fault.why)
        if short.input_tokens is None or full.input_tokens is None:
            return prompts, full
        half, whole = (prompts.words(tokens) for tokens in (max(1, self._asked.input_tokens // 2), self._asked.input_tokens))
        return prompts.fitted((half, short.input_tokens), (whole, full.input_tokens)), full

    async def _ask(self, form: Form, prompts: Prompts, input_tokens: int, output_tokens: int) -> Answer:
        output = min(output_tokens, self._asked.output_tokens)
        return await self._send(
            body(self._asked, form, prompts, input_tokens=max(1, input_tokens), output_tokens=output), lambda number: None
        )

    async def _send(self, request: bytes, on_chunks: Chunks) -> Answer:
        seconds = self._asked.timeout_seconds
        if self._asked.streams:
            most = MANY_TIMES * self._asked.output_tokens + SPARE_CHUNKS
            return await ask_stream(
                self._http, self._url, request, timeout_seconds=seconds, on_chunks=on_chunks, most_chunks=most
            )
        return await ask_whole(self._http, self._url, request, timeout_seconds=seconds)


def _asked_wrongly(asked: Asked) -> str | None:
    latencies = {bound.latency for bound in asked.slo.bounds}
    if not asked.streams and latencies - {"e2e"}:
        return f"An SLO of TTFT or TPOT cannot be judged of {asked.api}, which has no stream: bound its end-to-end time."
    if "tpot" in latencies and asked.output_tokens < 2:
        return "An SLO of TPOT needs at least two output tokens a request."
    if urlsplit(asked.endpoint).scheme not in ("http", "https"):
        return "The endpoint's URL starts with http:// or https://."
    return _out_of_range(("seconds", asked.seconds), ("input tokens", asked.input_tokens), ("output tokens", asked.output_tokens))


def _out_of_range(*rows: tuple[str, float]) -> str | None:
    return next((f"The number of {name} must be above 0." for name, value in rows if value <= 0), None)
