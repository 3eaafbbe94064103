"""A small real engine: llama.cpp's own server with a model of 135 million parameters, both out of packages
(requirements-llama.txt)."""
