"""Any server that speaks OpenAI's chat completions (vLLM, SGLang, llama.cpp, hosted ones)."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

from training.generation.engine import EngineSettings, ServerAddress, kept_responses
from training.generation.noise import key_seed
from training.generation.samples import Draw, Keep, Request, Response
from vcppo.errors import ConfigurationError, InfrastructureError, VcppoError

if TYPE_CHECKING:
    import httpx

KEY_VARIABLE = "OPENAI_API_KEY"
MAX_ATTEMPTS = 6
MAX_PAUSE_SECONDS = 30.0
WORTH_ANOTHER_TRY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
SHOWN_CHARACTERS = 300


class OpenAIEngine:
    """A bounded number of requests at once, each tried again with growing pauses.

    The server must offer the policy under `settings.server.model`; what weights these are only it knows.
    """

    def __init__(self, settings: EngineSettings) -> None:
        import httpx

        if settings.server is None:
            raise ConfigurationError(
                "engine openai: no server is named; set VCPPO_OPENAI_BASE_URL, for example "
                "http://localhost:8000/v1"
            )
        self.settings, self.server = settings, settings.server
        self._key = os.environ.get(KEY_VARIABLE, "")
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=httpx.Timeout(self.server.timeout_seconds, connect=min(30, self.server.timeout_seconds)),
            limits=httpx.Limits(max_connections=self.server.concurrency),
        )
        self._url = self.server.base_url.rstrip("/") + "/chat/completions"

    def sample(self, requests: Sequence[Request], draw: Draw, keep: Keep | None = None) -> list[Response]:
        """Responses in the order of the requests.

        Raises InfrastructureError (the server fails, does not answer, or answers nonsense, try after try)
        and ConfigurationError (it refuses: key, model, prompt).
        """
        stop = threading.Event()
        responses = {response.request.key: response for response in kept_responses(requests, keep)}
        missing = [request for request in requests if request.key not in responses]
        one_at_a_time = threading.Lock()

        def finish(request: Request) -> Response:
            # kept in its own thread, so that none is lost when another one fails
            response = self._respond(request, draw, stop)
            with one_at_a_time:
                if keep is not None:
                    keep.add([response])
            return response

        with ThreadPoolExecutor(self.server.concurrency, thread_name_prefix="openai") as pool:
            futures = [pool.submit(finish, request) for request in missing]
            try:
                for future in as_completed(futures):
                    response = future.result()
                    responses[response.request.key] = response
            finally:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
        return [responses[request.key] for request in requests]

    def _respond(self, request: Request, draw: Draw, stop: threading.Event) -> Response:
        import httpx

        body = completion_request(request, draw, self.server.model, self.settings.seed)
        complaint, pause = "", self.server.backoff_seconds
        for attempt in range(MAX_ATTEMPTS):
            if attempt and stop.wait(pause):
                break
            pause = min(2 * pause, MAX_PAUSE_SECONDS)
            try:
                reply = self._client.post(self._url, json=body)
            except httpx.InvalidURL as error:
                raise ConfigurationError(f"VCPPO_OPENAI_BASE_URL: {error}") from None
            except httpx.TransportError as error:
                complaint = f"{type(error).__name__}: {error}".rstrip(": ")
                continue
            if reply.status_code in WORTH_ANOTHER_TRY:
                complaint = f"status {reply.status_code}: {self._shown(reply)}"
                pause = max(pause, _asked_to_wait(reply))
                continue
            if reply.status_code != 200:
                raise self._refused(reply)
            try:
                return read_completion(request, reply)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                complaint = f"no completion ({type(error).__name__}: {error}) in {self._shown(reply)}"
        raise InfrastructureError(
            f"{self._url}: no response to sample {request.key} after {MAX_ATTEMPTS} tries; the last: "
            f"{complaint}. Finished responses are kept; see to the server and run again"
        )

    def _refused(self, reply: httpx.Response) -> VcppoError:
        advice = {
            401: f"put the server's key into {KEY_VARIABLE}",
            403: f"put a key that may do this into {KEY_VARIABLE}",
            404: f"check VCPPO_OPENAI_BASE_URL and that the server offers model {self.server.model!r} "
            "(VCPPO_OPENAI_MODEL)",
        }.get(reply.status_code, "see what the server says, and its limits on prompt and response length")
        return ConfigurationError(
            f"{self._url}: refused with status {reply.status_code}: {self._shown(reply)}; {advice}"
        )

    def _shown(self, reply: httpx.Response) -> str:
        # some servers quote the key that they refuse
        text = reply.text.replace(self._key, "[key]") if self._key else reply.text
        return repr(text[:SHOWN_CHARACTERS])


def server_address(
    base_url: str | None, model: str, policy: str, concurrency: int, timeout_seconds: float
) -> ServerAddress:
    """Where a policy (`before`, `after`) is offered; `{policy}` in the model's name is replaced by it.

    Raises ConfigurationError without an address.
    """
    if base_url is None:
        raise ConfigurationError(
            "engine openai: no server is named; set VCPPO_OPENAI_BASE_URL, for example "
            "http://localhost:8000/v1"
        )
    return ServerAddress(base_url, model.replace("{policy}", policy), concurrency, timeout_seconds)


def completion_request(request: Request, draw: Draw, model: str, seed: int) -> dict[str, Any]:
    """The body of one chat completion. `top_k` is no part of OpenAI's interface and only sent when set."""
    body: dict[str, Any] = {
        "model": model,
        "messages": list(request.messages),
        "n": 1,
        "temperature": draw.sampling.temperature,
        "top_p": draw.sampling.top_p,
        "max_tokens": draw.max_response_tokens,
        "seed": key_seed(seed, draw.key(request)),
    }
    return body | ({"top_k": draw.sampling.top_k} if draw.sampling.top_k else {})


def read_completion(request: Request, reply: httpx.Response) -> Response:
    """The response in a reply; malformed ones raise ValueError, LookupError, TypeError, AttributeError."""
    payload = reply.json()
    choice = payload["choices"][0]
    text = choice["message"].get("content")
    if text is not None and not isinstance(text, str):
        raise TypeError(f"content is {type(text).__name__}")
    reason = choice.get("finish_reason")
    if reason is None:
        raise ValueError("the response has not finished")
    version = payload.get("system_fingerprint") or reply.headers.get("server") or "not told"
    return Response(
        request=request,
        # a server that was cut while thinking sends no content: an empty response, graded as such
        text=text or "",
        finish_reason=reason if reason in ("stop", "length") else "abort",
        num_tokens=int((payload.get("usage") or {}).get("completion_tokens") or 0),
        engine_version=f"{payload.get('model', '')} {version}".strip(),
    )


def _asked_to_wait(reply: httpx.Response) -> float:
    """Seconds of a Retry-After header, within our own bound; 0 without one."""
    asked = reply.headers.get("retry-after", "")
    return min(float(asked), MAX_PAUSE_SECONDS) if asked.isdigit() else 0.0
