"""Sweeps that llmgw runs itself: asked for by a person, carried by one worker, and over in every case."""
