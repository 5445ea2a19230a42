"""A trace as one HTML file: what the page shows is computed here, once, by the functions that the terminal uses.

Knows traces and the language, no model and no engine.

Reading order: `document` (all data of a page), `page` (data, style and script in one file), `roles` (the names of
variables that mean something to the picture, all of them), `states` (between their two forms).

- Parts of the document: `messages` (arrows between replicas), `strip` (every promise at every state), `survival` (who
  could be elected), `schedule` (the same under another design), `sources` (the text of an action), `model_script` (the
  model as JavaScript).
- In the browser: script/app.js, which has the parts of the page, each in a file beside it.
- Pages of text and tables, without a script: `overview`.
- Files without a page: `picture` and `svg`, `shiviz`, `state_graph`.
"""
