"""What a sizing stands on: the snapshot as the question wants it, counted by the reconciler's own rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

from capacity.domain.counting import ratings_of
from capacity.domain.granting import MOST_GRANTS, Granter
from capacity.domain.load import Tally, tally
from capacity.domain.needs import Need, in_flight_of
from capacity.domain.offer import granter_of
from capacity.domain.placement import Rating
from capacity.domain.sizing.question import Question, WrongQuestion
from capacity.domain.types import EvidenceStatus, Measurement, Model, Replica, Snapshot
from quotas.domain.policy import QuotaPolicy, build_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The virtual snapshot. `order`: the profiles that may be started, in placement order. `scale`: how many whole parts one
    unit of the demand has, so that tokens a second stay exact in whole numbers. `evidence`: profile → status of its
    measurement before the question did anything with it; without an entry it has none."""

    question: Question
    snapshot: Snapshot
    own: Tally
    tallies: Sequence[Tally]
    replicas: Mapping[str, Sequence[Replica]]
    order: Sequence[Rating]
    evidence: Mapping[str, EvidenceStatus]
    policy: QuotaPolicy
    scale: int

    @property
    def model(self) -> Model:
        return self.own.model

    @property
    def gives(self) -> Callable[[Rating], int]:
        return in_flight_of if self.question.unit == "in_flight" else self._tokens

    def _tokens(self, rating: Rating) -> int:
        return int(rating.tokens_per_unit * rating.units * self.scale) if rating.concurrency else 0

    @property
    def demand(self) -> int:
        """What is to be covered, in parts, rounded up."""
        parts = self.question.wanted * self.scale
        return -(-parts.numerator // parts.denominator)

    @property
    def serving(self) -> list[Replica]:
        """Ready and starting replicas that serve, or will: those that count against the demand first."""
        return [replica for replica in (*self.own.ready, *self.own.starting) if not replica.under_test]

    @property
    def capacity(self) -> int:
        """What these serve, in parts."""
        return sum(self.gives(self.own.rating(replica)) for replica in self.serving)

    @property
    def missing_stores(self) -> tuple[str, ...]:
        """What could not be read and without which nothing is said."""
        kept = self.snapshot
        stores = {
            "replicas": kept.replicas is not None,
            "quotas": kept.quotas is not None and kept.scopes is not None,
            "measurements": kept.measurements is not None,
        }
        return tuple(store for store, known in stores.items() if not known)

    def need(self) -> Need:
        """The model's need, with what exists counted in and no step limit."""
        return Need(
            tally=self.own,
            reason="over_capacity",
            order=self.order,
            floor=0,
            wake=False,
            evacuate=False,
            promised=False,
            step=MOST_GRANTS,
            demand=self.demand,
            capacity=self.capacity,
            gives=self.gives,
        )

    def granter(self) -> Granter:
        """Room and books as they stand before anything is granted. With `--room total` no other model holds hardware."""
        held = [(counted, self.replicas.get(counted.model.name, ())) for counted in self.tallies]
        occupying = [pair for pair in held if pair[0] is self.own] if self.question.room == "total" else held
        charged = {} if self.question.scope is None else {self.model.name: self.question.scope}
        found = granter_of(self.snapshot, held, self.policy, occupying=occupying, charged=charged)
        if self.snapshot.replicas is None:
            found.ledger, found.missing = None, self.missing_stores
        return found


def ground_of(snapshot: Snapshot, model: str, question: Question, policy: QuotaPolicy | None = None) -> Ground:
    """Count everything once. Raises `WrongQuestion` where model, scope or a profile is not in the snapshot."""
    _check(snapshot, model, question)
    if policy is None:
        policy = build_policy(snapshot.scopes or (), snapshot.quotas or () if snapshot.scopes is not None else ())
    virtual = _as_asked(snapshot, model, question)
    ratings, replicas = ratings_of(virtual), _by_model(virtual)
    tallies = [
        tally(row, ratings.get(row.name, {}), replicas.get(row.name, ()), virtual.settings, virtual.at)
        for row in sorted(virtual.models, key=lambda row: row.name)
    ]
    own = next(counted for counted in tallies if counted.model.name == model)
    named = [rating for rating in own.ratings.values() if not question.profiles or rating.name in question.profiles]
    return Ground(
        question=question,
        snapshot=virtual,
        own=own,
        tallies=tallies,
        replicas=replicas,
        order=sorted(named, key=Rating.order),
        evidence={row.profile: row.status for row in snapshot.measurements or () if row.model == model},
        policy=policy,
        scale=_scale(own) if question.unit == "tokens_per_second" else 1,
    )


def _check(snapshot: Snapshot, model: str, question: Question) -> None:
    if all(row.name != model for row in snapshot.models):
        raise WrongQuestion("model", f"There is no model {model}.")
    known = {row.name for row in snapshot.profiles if row.model == model}
    for name in question.profiles:
        if name not in known:
            raise WrongQuestion("profile", f"{model} has no profile {name}.")
    if question.scope is not None and snapshot.scopes is not None and all(row.name != question.scope for row in snapshot.scopes):
        raise WrongQuestion("scope", f"There is no scope {question.scope}.")


def _by_model(snapshot: Snapshot) -> dict[str, list[Replica]]:
    found: dict[str, list[Replica]] = {}
    for replica in snapshot.replicas or ():
        found.setdefault(replica.model, []).append(replica)
    return found


def _as_asked(snapshot: Snapshot, model: str, question: Question) -> Snapshot:
    """The snapshot with the model's evidence as `--stale` wants it."""
    if snapshot.measurements is None:
        return snapshot
    rows = [_evidence(row, question) if row.model == model else row for row in snapshot.measurements]
    return replace(snapshot, measurements=tuple(row for row in rows if row is not None))


def _evidence(row: Measurement, question: Question) -> Measurement | None:
    """None where it does not count: stale, or without the number that is asked for."""
    if question.unit == "tokens_per_second" and row.max_concurrency and not row.tokens_per_second:
        return None
    if row.status != "stale" or question.stale == "use":
        return row
    if question.stale == "exclude":
        return None
    # whole requests are in flight; a replica that serves at all serves one
    concurrency = max(int(row.max_concurrency * question.derate), min(1, row.max_concurrency))
    return replace(row, max_concurrency=concurrency, tokens_per_second=row.tokens_per_second * question.derate)


def _scale(own: Tally) -> int:
    """Parts of a token a second, so that all that replicas give are whole. Requests in flight are whole by themselves."""
    tokens = [rating.tokens_per_unit * rating.units for rating in own.ratings.values()]
    return lcm(*(value.denominator for value in tokens if isinstance(value, Fraction)))
