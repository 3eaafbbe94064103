"""Which replicas are on a host that is not heard: what they are now, nobody knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from ..models import Node, Replica
from ..observation.hearing import heard


def unheard(replicas: Sequence[Replica], now: datetime) -> dict[int, str]:
    """Replica id → `lost` or `silent`, for those on such a host. All of one pool; registered engines answer for themselves."""
    names = {name for replica in replicas if not replica.is_registered for name in replica.nodes}
    if not names:
        return {}
    found = Node.objects.filter(pool=replicas[0].pool_id, name__in=names).select_related("pool__settings", "pool__lease")
    words = {node.name: heard(node, now) for node in found}
    silences = {replica.pk: _worst(replica, words) for replica in replicas if not replica.is_registered}
    return {pk: word for pk, word in silences.items() if word}


def _worst(replica: Replica, words: Mapping[str, str]) -> str:
    said = {words.get(name, "") for name in replica.nodes}
    return next((word for word in ("lost", "silent") if word in said), "")
