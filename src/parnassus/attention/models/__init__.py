"""Transformers and their blocks: encoders, language models, translation, vision and music."""
