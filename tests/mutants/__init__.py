"""Mutation testing: plants known errors in the methods, one at a time, and reports which claims and tests notice."""
