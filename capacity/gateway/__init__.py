"""A small example gateway: routes by the control plane's weights, holds what finds no replica, and pushes what it sees.

It makes its own load, shaped by public traces, so that the example fleet has something to scale by.
"""
