"""The engines: they know the language, never a model."""
