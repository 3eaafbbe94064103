"""Who gives back: for whom somebody else is entitled, and down to a limit that was lowered."""
