"""The sections of the page, each made from what was found."""
