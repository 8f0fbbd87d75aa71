"""Ask the Hugging Face Hub, with one sentence for whatever goes wrong and none of the library's remarks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module

from isoscope.errors import IsoscopeError, first_line

_TURN = threading.Lock()
_silent: list[int] = []  # the level of the library's remarks before they were silenced, once for each thread


class Unreachable(IsoscopeError):  # noqa: N818  (what happened, not what is wrong in here)
    """The hub did not answer, or not as it should."""


@contextmanager
def asking(address: str, revision: str | None, advice: str = "") -> Iterator[None]:
    """One sentence for whatever goes wrong while the hub is asked for a model; `advice` where it has none."""
    from huggingface_hub import errors

    unreachable: tuple[type[Exception], ...] = (OSError, RuntimeError, *transport_errors())
    at = f" at '{revision}'" if revision else ""
    missing = f"no model '{address}': there is no such folder here, and "
    told: dict[type[Exception], str] = {  # the narrower kinds first
        errors.HFValidationError: f"{missing}it is no hub id (owner/name).{advice}",
        errors.GatedRepoError: f"the model '{address}' is gated: log in with `hf auth login` first.",
        errors.RevisionNotFoundError: f"the model '{address}' has no revision '{revision}' on the hub.",
        errors.RepositoryNotFoundError: f"{missing}the hub has none of that name.{advice}",
        errors.EntryNotFoundError: f"a file of '{address}'{at} is not on the hub any more.",
    }
    try:
        with hushed():
            yield
    except tuple(told) as reason:
        raise IsoscopeError(next(told[kind] for kind in told if isinstance(reason, kind))) from reason
    except errors.HfHubHTTPError as reason:
        code = getattr(reason.response, "status_code", "an error")
        raise Unreachable(f"the hub answered {code} when asked for '{address}'{at}.") from reason
    except unreachable as reason:
        raise Unreachable(f"the hub cannot be reached for '{address}'{at}: {first_line(reason)}.") from reason


def transport_errors() -> tuple[type[Exception], ...]:
    """What the hub's HTTP library raises when there is no connection; which library that is depends."""
    found = []
    for library in ("httpx", "httpx2"):
        with suppress(ImportError):
            found.append(import_module(library).TransportError)
    return tuple(found)


@contextmanager
def hushed() -> Iterator[None]:
    """Keep the library's remarks off the screen, from however many threads at once."""
    hub = logging.getLogger("huggingface_hub")
    with _TURN:
        _silent.append(_silent[0] if _silent else hub.level)
        hub.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        with _TURN:
            before = _silent.pop()
            if not _silent:
                hub.setLevel(before)
