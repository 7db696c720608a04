"""Claims about source codes and rate-distortion, each with numerical evidence."""
