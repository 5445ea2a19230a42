"""A trace as one HTML file: what the page shows is computed here, once, by the functions that the terminal uses.

`document` makes the data, `page` puts data, style and script into one file. Knows traces and the language, no
model and no engine; the names of variables that mean something to the picture are in `roles`, all of them.
"""
