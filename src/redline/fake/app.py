"""The server: routes requests, and plays the faults that fall on a request as a whole. Knows no sockets' details.

Order of what can happen to a request: it hangs, an unreadable body, another model's name, what the model cannot do,
its length, depth faults, and then the answer with the faults of the wire.
"""

import json
from collections.abc import Callable
from typing import Any, Final

from redline.fake import tokens
from redline.fake.anthropic import MessagesShape
from redline.fake.core import Core, Emission, Job
from redline.fake.dialect import Dialect, Refusal
from redline.fake.http import Gone, Request, Response
from redline.fake.prompt import BadRequestError, Prompt, anthropic_prompt, chat_prompt, text_prompt
from redline.fake.scenario import Scenario
from redline.fake.sender import Sender
from redline.fake.shapes import DONE, ChatShape, Shape, TextShape, event
from redline.fake.truth import Answered, TruthLog, Write

_HTML: Final = b"<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><h1>It works!</h1></body></html>\n"
_DEAD: Final = "EngineCore encountered an issue. See stack trace (above) for the root cause."
_TEMPLATE: Final = "After the optional system message, conversation roles must alternate user/assistant."
_READERS: Final[dict[str, tuple[str, Callable[[dict[str, Any]], Prompt]]]] = {
    "/v1/chat/completions": ("chat", chat_prompt),
    "/v1/completions": ("text", text_prompt),
    "/v1/messages": ("messages", anthropic_prompt),
}


class App:
    """Answers requests for one scenario in one dialect. `die` ends the process as the scenario says."""

    def __init__(
        self, scenario: Scenario, dialect: Dialect, core: Core, truth: TruthLog, die: Callable[[str], None]
    ) -> None:
        self._scenario, self._dialect, self._core, self._truth, self._die = scenario, dialect, core, truth, die
        self.loading = False

    async def handle(self, request: Request, response: Response) -> None:
        """Answer one request."""
        if self._scenario.wire.body == "html":
            response.whole(200, _HTML, "text/html; charset=utf-8")
        elif self.loading:
            response.json(503, self._dialect.error(503, "Loading model"))
        elif request.method == "GET":
            self._get(request, response)
        elif request.method == "POST":
            await self._post(request, response)
        else:
            response.json(405, self._dialect.error(405, "Method Not Allowed"))

    def _get(self, request: Request, response: Response) -> None:
        if request.path == "/health":
            status, body = self._dialect.health()
            if body is None:
                response.whole(status, b"")
            else:
                response.json(status, body)
        elif request.path == "/metrics":
            response.whole(200, self._dialect.metrics().encode(), self._dialect.metrics_type)
        elif found := self._dialect.gets().get(request.path):
            response.json(*found())
        else:
            response.json(404, self._dialect.error(404, "Not Found"))

    async def _post(self, request: Request, response: Response) -> None:
        try:
            body = _read_body(request)
            match request.path:
                case "/tokenize":
                    response.json(200, self._dialect.tokenize(body))
                case "/detokenize":
                    response.json(200, self._dialect.detokenize(body))
                case "/reset_prefix_cache":
                    response.whole(200, b"")
                case path if path in _READERS:
                    await self._generate(path, body, response)
                case _:
                    response.json(404, self._dialect.error(404, "Not Found"))
        except (BadRequestError, UnicodeDecodeError, json.JSONDecodeError) as error:
            response.json(400, self._dialect.error(400, str(error)))
        except Refusal as refusal:
            response.json(refusal.status, refusal.body)

    async def _generate(self, path: str, body: dict[str, Any], response: Response) -> None:
        wire = self._scenario.wire
        if wire.hang == "before_headers":
            await response.until_gone()
            raise Gone
        kind, read = _READERS[path]
        if kind == "messages" and wire.messages == "as_chat":
            kind = "chat"
        name = body.get("model")
        if isinstance(name, str) and (refusal := self._dialect.unknown_model(name)):
            raise refusal
        prompt = read(body)
        self._refuse(prompt)
        self._count_life()
        streamed = bool(body.get("stream"))
        if wire.body == "error_in_200":
            self._error_in_200(response, streamed=streamed)
            return
        job = self._core.job(prompt)
        shape = self._shape(kind, body, job)
        if streamed:
            await self._stream(job, shape, response)
        else:
            await self._whole(job, shape, response)

    def _refuse(self, prompt: Prompt) -> None:
        """Raise the engine's refusal of what the model cannot do or hold."""
        model, depth = self._scenario.model, self._scenario.depth
        if prompt.images and not model.vision:
            raise self._dialect.no_images()
        if prompt.tools and not model.tools and (refusal := self._dialect.no_tools()):
            raise refusal
        if not model.tool_history and any(message.get("role") == "tool" for message in prompt.messages):
            raise Refusal(status=500, body=self._dialect.error(500, _TEMPLATE))
        size = tokens.count(prompt.text)
        limit = min(model.context, model.real_context or model.context)
        if size >= limit:
            raise self._dialect.too_long(size, prompt.max_tokens, limit)
        if depth is not None and size > depth.above_tokens:
            if depth.outcome == "dies":
                self._die(depth.message)
            raise Refusal(status=500, body=self._dialect.error(500, _DEAD))

    def _count_life(self) -> None:
        dies_after = self._scenario.life.dies_after_requests
        if dies_after is not None and self._core.answered >= dies_after:
            self._die("illegal_memory_access")

    def _shape(self, kind: str, body: dict[str, Any], job: Job) -> Shape:
        answer_id = self._dialect.answer_id(kind)
        if kind == "messages":
            return MessagesShape(id=answer_id, model=self._scenario.model.id, job=job)
        usage = bool((body.get("stream_options") or {}).get("include_usage"))
        form = ChatShape if kind == "chat" else TextShape
        return form(style=self._dialect, id=answer_id, model=self._scenario.model.id, usage_asked=usage)

    async def _stream(self, job: Job, shape: Shape, response: Response) -> None:
        sender = Sender(response, shape, job, self._scenario.wire, self._truth)
        parts = self._core.run(job, lambda: response.gone, merged=self._dialect.merges_steps)
        empty = self._scenario.answer.empty == "closed" and not job.units
        try:
            await sender.stream(parts, closes_without_end=empty)
        finally:
            await parts.aclose()
            self._answered(job, sender.first_token_ns, sender.last_token_ns)

    async def _whole(self, job: Job, shape: Shape, response: Response) -> None:
        parts: list[Emission] = []
        async for part in self._core.run(job, lambda: response.gone, merged=True):
            parts.append(part)  # noqa: PERF401 -- a loop that can be aborted between parts
        if self._scenario.answer.empty == "closed" and not job.units:
            response.cut()
            return
        data = shape.whole(job, parts, usage=self._scenario.wire.usage != "missing")
        before, after = response.json(200, data)
        made = job.made_tokens
        self._truth.add(
            Write(request=job.number, event="chunk", before_ns=before, after_ns=after, kind="content", tokens=made)
        )
        self._answered(job, before, after)

    def _error_in_200(self, response: Response, *, streamed: bool) -> None:
        """Answer as a server whose engine failed after it had said 200."""
        data = self._dialect.error(500, "CUDA error: an illegal memory access was encountered")
        if not streamed:
            response.json(200, data)
            return
        response.begin("text/event-stream; charset=utf-8")
        response.piece(event(data))
        response.piece(DONE)
        response.end()

    def _answered(self, job: Job, first_ns: int | None, last_ns: int | None) -> None:
        self._truth.add(
            Answered(
                request=job.number,
                received_ns=job.received_ns,
                first_token_ns=first_ns,
                last_token_ns=last_ns,
                prompt_tokens=job.prompt_tokens,
                cached_tokens=job.cached_tokens,
                completion_tokens=job.made_tokens,
                drafts=job.drafts,
                drafted_tokens=job.drafted_tokens,
                accepted_tokens=job.accepted_tokens,
                finish_reason=job.finish_reason,
            )
        )


def _read_body(request: Request) -> dict[str, Any]:
    body = json.loads(request.body or b"{}")
    if not isinstance(body, dict):
        raise BadRequestError("the body is no object")
    return body
