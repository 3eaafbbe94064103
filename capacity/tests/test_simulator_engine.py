"""The simulated engine by a hand-moved clock: full speed up to its capacity, slower above it."""

from __future__ import annotations

import pytest

from capacity.simulator.engine import Engine, Stream
from capacity.simulator.metrics import TOKEN_BOUNDS
from capacity.simulator.options import EngineOptions
from capacity.sources.reading import read_engine

TTFT, TPOT = 0.2, 0.02


def engine(capacity: int = 8, max_running: int = 32, **options) -> Engine:
    chosen = EngineOptions(capacity=capacity, max_running=max_running, ttft_seconds=TTFT, tpot_seconds=TPOT, **options)
    return Engine(chosen, now=0.0)


def submit(sim: Engine, number: int, *, now: float = 0.0, output_tokens: int = 101) -> list[Stream]:
    return [sim.submit(now, prompt_tokens=7, output_tokens=output_tokens, wake=lambda: None) for _ in range(number)]


def run_to_end(sim: Engine) -> float:
    """Follow the engine's own events until nothing runs; the time of the last one."""
    at = 0.0
    while (due := sim.next_event_at()) is not None:
        at = due
        sim.advance(at)
    return at


def mean_token_seconds(running: int, capacity: int = 8) -> float:
    sim = engine(capacity, max_running=1000)
    submit(sim, running)
    run_to_end(sim)
    return sim.metrics.token.sum / (running * 100)


@pytest.mark.parametrize("running", [1, 4, 8])
def test_up_to_the_capacity_tokens_take_the_stated_time_at_most(running):
    assert 0.98 * TPOT <= mean_token_seconds(running) <= TPOT


def test_however_irregularly_it_is_looked_at_each_token_is_counted_with_the_time_that_it_took():
    sim = engine()
    submit(sim, 8)
    at, step = 0.0, 0.003
    while sim.running:
        at, step = at + step, 0.003 if step > 0.02 else step * 1.7
        sim.advance(at)
    slow = sum(sim.metrics.token.counts[TOKEN_BOUNDS.index(0.025) + 1 :])
    assert (sum(sim.metrics.token.counts), slow) == (800, 0)


@pytest.mark.parametrize(("running", "capacity"), [(9, 8), (65, 64), (2, 1)])
def test_one_request_past_the_capacity_breaks_the_stated_time(running, capacity):
    assert mean_token_seconds(running, capacity) > TPOT


def test_twice_the_capacity_takes_twice_the_time_and_yields_no_more_tokens_a_second():
    assert mean_token_seconds(16) == pytest.approx(2 * mean_token_seconds(8), rel=0.02)


@pytest.mark.parametrize(("running", "factor"), [(1, 1), (8, 1), (16, 2), (32, 4)])
def test_the_first_token_slows_with_the_batch(running, factor):
    sim = engine()
    submit(sim, running)
    run_to_end(sim)
    assert 0.85 * TTFT * factor <= sim.metrics.ttft.sum / running <= TTFT * factor


def test_requests_above_the_most_that_run_wait_in_turn():
    sim = engine(capacity=2, max_running=3)
    streams = submit(sim, 5)
    assert (sim.running, sim.waiting) == (3, 2)
    assert [stream.state for stream in streams] == ["running"] * 3 + ["waiting"] * 2
    run_to_end(sim)
    assert [stream.state for stream in streams] == ["done"] * 5


def test_a_stream_speeds_up_when_others_end():
    alone, crowded = engine(capacity=1), engine(capacity=1)
    submit(alone, 1, output_tokens=101)
    submit(crowded, 1, output_tokens=101)
    (short,) = submit(crowded, 1, output_tokens=11)
    crowded.advance(1.0)
    assert short.state == "done"
    by_itself, beside_another = run_to_end(alone), run_to_end(crowded)
    assert by_itself < beside_another < by_itself + 1.0


def test_a_request_that_is_cut_is_in_flight_no_longer_and_lets_the_next_in():
    sim = engine(capacity=1, max_running=1)
    first, second = submit(sim, 2)
    sim.cut(0.5, first)
    assert (first.state, second.state, sim.waiting) == ("cut", "running", 0)
    sim.cut(0.6, second)
    sim.cut(0.6, second)
    assert (sim.running, sim.metrics.ended["abort"], sim.next_event_at()) == (0, 2, None)


def test_a_waiting_request_can_be_cut():
    sim = engine(capacity=1, max_running=1)
    _, second = submit(sim, 2)
    sim.cut(0.1, second)
    assert (sim.running, sim.waiting) == (1, 0)


def test_tokens_are_counted_while_they_flow_and_once_each():
    sim = engine()
    (stream,) = submit(sim, 1, output_tokens=101)
    seen = []
    for step in range(30):
        sim.advance(step * 0.1)
        seen.append(sim.metrics.generation_tokens)
        assert stream.tokens == seen[-1]
    assert seen == sorted(seen)
    assert len(set(seen)) > 15
    assert seen[-1] == 101


def test_an_answer_of_one_token_ends_with_its_first():
    sim = engine()
    (stream,) = submit(sim, 1, output_tokens=1)
    run_to_end(sim)
    assert (stream.tokens, stream.state, sim.metrics.token.sum) == (1, "done", 0.0)


def test_looking_seldom_or_often_changes_nothing():
    often, seldom = engine(seed=3), engine(seed=3)
    for sim in (often, seldom):
        submit(sim, 12)
    for step in range(1000):
        often.advance(step * 0.01)
    seldom.advance(10.0)
    assert often.metrics.e2e.sum == pytest.approx(seldom.metrics.e2e.sum)
    assert often.metrics.generation_tokens == seldom.metrics.generation_tokens == 12 * 101


def test_the_same_seed_gives_the_same_times_and_another_seed_others():
    def e2e(seed: int) -> float:
        sim = engine(seed=seed)
        submit(sim, 5)
        run_to_end(sim)
        return sim.metrics.e2e.sum

    assert e2e(1) == e2e(1) != e2e(2)


def test_it_loads_for_as_long_as_it_was_told():
    sim = engine(load_seconds=3.0)
    assert [sim.loading(at) for at in (0.0, 2.9, 3.0)] == [True, True, False]


def test_its_metrics_are_read_as_vllm_s():
    sim = engine(capacity=2, max_running=3, model='a"b\\c')
    submit(sim, 5)
    sim.advance(1.0)
    text = sim.metrics.render(running=sim.running, waiting=sim.waiting, kv_cache_usage=sim.kv_cache_usage())
    reading = read_engine(text)
    assert (reading.engine, reading.running, reading.waiting, reading.in_flight) == ("vllm", 3, 2, 5)
    assert reading.output_tokens_total == sim.metrics.generation_tokens > 0
    assert (reading.prompt_tokens_total, reading.kv_usage_max) == (21, 1.0)
    assert '{engine="0",model_name="a\\"b\\\\c"}' in text


def test_histograms_count_below_and_at_their_bounds():
    sim = engine()
    for value in (0.3, 0.31, 1e9):
        sim.metrics.e2e.observe(value)
    lines = list(sim.metrics.e2e.lines("h", 'x="1"'))
    assert lines[0] == 'h_bucket{x="1",le="0.3"} 1.0'
    assert lines[1] == 'h_bucket{x="1",le="0.5"} 2.0'
    assert lines[-3:-1] == ['h_bucket{x="1",le="+Inf"} 3.0', 'h_count{x="1"} 3.0']
