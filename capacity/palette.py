"""The colours of charts, by the name of the custom property that holds them."""

from __future__ import annotations

# The light theme's colours; the page's script puts the custom property of the theme in their place.
COLOURS = {
    "ink": "#15202b",
    "muted": "#5b6875",
    "line": "#dfe4ea",
    "card": "#ffffff",
    "accent": "#2f6fde",
    "good": "#167a4a",
    "warn": "#9a5b00",
    "bad": "#b3261e",
    "unknown": "#7a8591",
    "series-1": "#2e6edd",
    "series-2": "#0f9a8a",
    "series-3": "#b4600f",
    "series-4": "#8a3fb8",
    "series-5": "#c2387a",
    "series-6": "#5c7a12",
    "series-7": "#0b7fa8",
    "series-8": "#a8740a",
    "series-9": "#5b57d6",
    "series-10": "#9c4a3c",
}
SERIES_COLOURS = [colour for name, colour in COLOURS.items() if name.startswith("series-")]
