"""The command line: one module per verb, and the modules that the verbs share. No other package imports it."""
