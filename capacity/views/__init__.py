"""The pages. Each asks querysets for what its user may see; foreign things are not found."""
