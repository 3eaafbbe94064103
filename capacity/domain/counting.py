"""What each profile is worth: a plan and a sizing count alike."""

from __future__ import annotations

from capacity.domain.placement import Rating, rate
from capacity.domain.types import Snapshot


def ratings_of(snapshot: Snapshot) -> dict[str, dict[str, Rating]]:
    """Model → profile → what its measurement counts."""
    measured = {(row.model, row.profile): row for row in snapshot.measurements or ()}
    ratings: dict[str, dict[str, Rating]] = {}
    for profile in snapshot.profiles:
        rating = rate(profile, measured.get((profile.model, profile.name)), snapshot.settings)
        ratings.setdefault(profile.model, {})[profile.name] = rating
    return ratings
