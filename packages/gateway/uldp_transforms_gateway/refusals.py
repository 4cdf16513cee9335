"""HTTP status codes, one for each reason."""

from __future__ import annotations

from uldp_transforms.ldp.reasons import Reason

OK, ACCEPTED, BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, TIMEOUT = 200, 202, 400, 401, 403, 408
TOO_LARGE, UNSUPPORTED = 413, 415
UNPROCESSABLE, TOO_MANY, UNAVAILABLE = 422, 429, 503

RETRY_AFTER = {"Retry-After": "1"}

_OF_BYTES = (Reason.UNKNOWN_SCHEMA, Reason.MALFORMED, Reason.TRAILING_BYTES, Reason.NON_CANONICAL, Reason.OUT_OF_RANGE)

STATUS: dict[Reason, int] = {
    **dict.fromkeys(Reason, UNPROCESSABLE),
    **dict.fromkeys(_OF_BYTES, BAD_REQUEST),
    Reason.TOO_LARGE: TOO_LARGE,
}
"""Response to a message of which nothing was accepted."""


class Refused(Exception):
    """A request that is refused before its message is read."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None):
        self.status = status
        self.reason = reason
        self.headers = headers
        super().__init__(reason)
