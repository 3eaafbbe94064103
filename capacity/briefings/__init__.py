"""What a person is told before an act, or of a file: numbers first, the same for page, API and command."""
