"""Evaluation: problems of a benchmark to numbers with error bars.

- `benchmarks`  the declarations, and what a configuration makes of them
- `options`     multiple choice: an order of the options for each sample
- `policies`    all samples of one policy: drawn, graded, complete, stored
- `figures`     samples to avg@k, pass@k, maj@k, rates and paired differences
- `promotion`   may the trained policy take the place of the one before?
- `self_check`  stored responses with known grades must give known figures

To add a benchmark: an entry in `benchmarks.DECLARATIONS`.
"""
