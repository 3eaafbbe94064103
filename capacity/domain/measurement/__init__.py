"""From a sweep to a measurement: what one replica serves within its SLO, of what kind that answer is, and why."""
