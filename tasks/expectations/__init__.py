"""What must hold of prepared data, and who checks it.

- `view`     flat tables made from the prepared files: ids, hashes, lengths, short words
- `prepared` the prepared problems as columns, read row group by row group
- `rows`     the cells of one row group
- `tokens`, `golds`, `signs`   the columns that need more than reading: prompt lengths and characters that a
  tokenizer loses, what the grader makes of gold answers, what a text gives away
- `suites`   the expectations on each table, with their names and severities
- `runner`   Great Expectations behind one function: frames and expectations in, findings and Data Docs out
"""
