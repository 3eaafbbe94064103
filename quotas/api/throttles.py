"""How often one account may write. The counts live in the cache; without it nobody is held up."""

from __future__ import annotations

import logging
from typing import Any

from rest_framework.permissions import SAFE_METHODS
from rest_framework.throttling import ScopedRateThrottle

log = logging.getLogger(__name__)


class WriteThrottle(ScopedRateThrottle):
    """Counts writes by account and kind (`throttle_scope` of the view)."""

    THROTTLE_RATES = {"write": "600/min", "wake": "300/min", "load": "1200/min", "plan": "120/min"}

    def allow_request(self, request: Any, view: Any) -> bool:
        if request.method in SAFE_METHODS:
            return True
        try:
            return bool(super().allow_request(request, view))
        except Exception as error:
            # counting is a courtesy; an API that stands still because its counter is away would be worse
            log.warning("Writes are not counted, the cache does not answer: %s", type(error).__name__)
            return True
