"""What must hold of prepared data, and who checks it.

- `view`     flat tables made from the prepared files: ids, hashes, lengths, words
- `suites`   the expectations on each of them, with their severity
- `runner`   Great Expectations behind one function: frames and expectations in, findings and Data Docs out
"""
