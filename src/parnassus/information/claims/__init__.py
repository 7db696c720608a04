"""Claims about source codes and rate-distortion."""
