"""Claims about flows and autoregressive models, each with numerical evidence."""
