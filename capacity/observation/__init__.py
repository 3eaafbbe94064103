"""What hosts, engines and gateways say, laid over what is known: the first half of a pass."""
