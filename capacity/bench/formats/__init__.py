"""Result files of other tools, one module a format. `registry.read_file` finds the format by content."""
