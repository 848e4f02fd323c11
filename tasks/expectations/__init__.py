"""What must hold of prepared data, and who checks it.

- `view`     flat tables made from the prepared files: ids, hashes, lengths, short words
- `rows`     one row of them, read from the prepared files group by group
- `tokens`, `golds`, `signs`   the columns that need more than reading: prompt lengths, what the grader
  makes of gold
  answers, what a text gives away
- `suites`   the expectations on each table, with their names and severities
- `runner`   Great Expectations behind one function: frames and expectations in, findings and Data Docs out
"""
