"""Things to touch in flows: a plane that a chain of maps bends into data (book sec. 13.1)."""
