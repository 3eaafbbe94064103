"""Sweeps: those that llmgw runs itself, and those that other tools ran."""
