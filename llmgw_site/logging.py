"""One line of JSON an event, with the request's or the pass's id bound to it. Secrets are masked before they are written."""

from __future__ import annotations

import logging.config
import re
from typing import Any

import structlog

SECRET_IN_URL = re.compile(r"(\w+://[^\s/:@]*):([^\s@/]+)@")
SECRET_HEADER = re.compile(r"(?i)(bearer|token|password|secret|authorization)([\"'=:\s]+)(?!\s)([^\s\"',;]{6,})")


def mask(text: str) -> str:
    """The text without passwords in URLs and without bearer tokens."""
    return SECRET_HEADER.sub(r"\1\2***", SECRET_IN_URL.sub(r"\1:***@", text))


def mask_event(_logger: Any, _name: str, event: dict[str, Any]) -> dict[str, Any]:
    return {key: mask(value) if isinstance(value, str) else value for key, value in event.items()}


SHARED = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
    mask_event,
]


def dict_config(level: str) -> dict[str, Any]:
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": SHARED,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.processors.JSONRenderer(sort_keys=True),
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django.server": {"level": "WARNING"},
            "axes": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
        },
    }


def configure(config: dict[str, Any]) -> None:
    logging.config.dictConfig(config)
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
