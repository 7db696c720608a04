"""Claims about transfer learning, each with numerical evidence."""
