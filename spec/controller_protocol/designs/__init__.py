"""Every other design of controllers: `reports` (what was reported of them, each by its number, and what mends it)."""
