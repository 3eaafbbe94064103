"""The figures of speed that `make bench` prints. Each measured thing is a function of its own; nothing asserts on time."""
