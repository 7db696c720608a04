"""Claims about flows and autoregressive models, each with the numerical evidence that decides it."""
