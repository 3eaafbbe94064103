"""Which MIG profile an instance has, where its tool shows no more than its memory and multiprocessors."""

from __future__ import annotations

import math
from collections.abc import Mapping

from capacity.domain.products import resource_of

# Class → (multiprocessors of a seventh, memory of the whole card in GB → sizes of profiles in GB → their sevenths).
# From NVIDIA's "MIG User Guide", table of supported profiles.
_80 = {10: (1,), 20: (1, 2), 40: (3, 4), 80: (7,)}
_PROFILES: Mapping[str, Mapping[int, Mapping[int, tuple[int, ...]]]] = {
    "gpu/a30": {24: {6: (1,), 12: (2,), 24: (4,)}},
    "gpu/a100": {40: {5: (1,), 10: (1, 2), 20: (3, 4), 40: (7,)}, 80: _80},
    "gpu/h100": {80: _80, 94: {12: (1,), 24: (1, 2), 47: (3, 4), 94: (7,)}, 96: {12: (1,), 24: (1, 2), 48: (3, 4), 96: (7,)}},
    "gpu/gh200": {96: {12: (1,), 24: (1, 2), 48: (3, 4), 96: (7,)}, 141: {18: (1,), 36: (1, 2), 72: (3, 4), 144: (7,)}},
    "gpu/h200": {141: {18: (1,), 35: (1, 2), 71: (3, 4), 141: (7,)}},
    "gpu/b200": {180: {23: (1,), 45: (1, 2), 90: (3, 4), 180: (7,)}},
    "gpu/rtx-pro-6000": {96: {24: (1,), 48: (2,), 96: (4,)}},
}
# Multiprocessors of instances with so many sevenths, largest first where a product has several forms.
_MULTIPROCESSORS: Mapping[str, Mapping[int, int]] = {
    "gpu/a30": {1: 14, 2: 28, 4: 56},
    "gpu/a100": {1: 14, 2: 28, 3: 42, 4: 56, 7: 98},
}
_HOPPER = {1: 16, 2: 32, 3: 60, 4: 64, 7: 132}


def profile_of(product: str, card_mib: int | None, memory_mib: int | None, multiprocessors: int | None) -> str | None:
    """ "3g.20gb" for an instance of 19968 MiB with 42 multiprocessors on an A100 of 40 GB; None where it cannot be told."""
    resource = resource_of(product)[0]
    if card_mib is None or memory_mib is None or not (sizes := _sizes(resource, card_mib)):
        return None
    # what an instance shows is its profile's size less what the driver keeps
    size = min((size for size in sizes if size >= memory_mib / 1024), default=None)
    if size is None:
        return None
    parts = _nearest(_MULTIPROCESSORS.get(resource, _HOPPER), sizes[size], multiprocessors)
    return f"{parts}g.{size}gb" if parts else None


def _sizes(resource: str, card_mib: int) -> Mapping[int, tuple[int, ...]] | None:
    """Of the product's cards the smallest that has this memory: a card of 80 GB shows 81559 or 81920 MiB."""
    cards = _PROFILES.get(resource, {})
    return next((cards[card] for card in sorted(cards) if card_mib <= card * 1.03 * 1024), None)


def _nearest(of_parts: Mapping[int, int], candidates: tuple[int, ...], multiprocessors: int | None) -> int | None:
    if multiprocessors is None:
        return candidates[0] if len(candidates) == 1 else None
    return min(candidates, key=lambda parts: math.fabs(of_parts.get(parts, 0) - multiprocessors))
