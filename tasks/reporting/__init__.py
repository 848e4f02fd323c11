"""The report page: from what the stages left to one HTML file that needs nothing else.

Modules:
- `inputs`      what the page is made of, read from the workspace
- `numbers`     figures as a reader wants them; axes with round ticks
- `plot`        line and interval charts as coordinates
- `curves`      which curves are shown, of which columns
- `evaluation`  headline, comparison and evaluation table
- `samples`     responses to read
- `provenance`  stages, versions, hashes, code
- `page`        all of it through the templates

Python computes, `templates/` writes: every word and number from data passes Jinja's escaping there. To add a
curve, name it in `curves`; to add a section, give `page` its values and the template its place.
"""
