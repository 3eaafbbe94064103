"""A stand-in for an inference engine: an OpenAI-compatible streaming server with vLLM's metrics and a stated capacity.

It computes nothing, so that a dozen of them run on one core, but it truly slows past its capacity, so that a sweep finds it.
"""
