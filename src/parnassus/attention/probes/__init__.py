"""Things to touch in attention: kernels, positions, maps, and what comes next in a text (book ch. 10)."""
