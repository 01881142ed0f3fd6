"""HTTP of the console: requests, forms, templates, languages. Pages know nothing of it."""
