"""Claims about transfer learning."""
