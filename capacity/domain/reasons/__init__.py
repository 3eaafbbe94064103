"""The one table of words: every reason, problem, limit and notice, as pages, API, logs, metrics and docs name it."""

from capacity.domain.reasons.decisions import REASONS
from capacity.domain.reasons.notices import BRAKES, LIMITS, NOTICES
from capacity.domain.reasons.problems import PROBLEMS
from capacity.domain.reasons.word import Word

__all__ = ["BRAKES", "LIMITS", "NOTICES", "PROBLEMS", "REASONS", "Word"]
