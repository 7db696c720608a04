"""The command line: one file a verb, and what a verb needs beside it. Nothing imports it."""
