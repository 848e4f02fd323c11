"""The ablation study (config section `ablation`): rows of training runs side by side, several seeds each.

Modules, in the order of their use:
- `plan`      which runs a study has, each with its configuration and fingerprint;
- `run`       one of them, trained and evaluated in a process of its own;
- `results`   reads what the runs published (data/ablation);
- `summary`   from it to metrics/ablation.json and plots/ablation.csv: means over seeds with 95 % intervals,
              paired differences;
- `findings`  what the paper claims, and whether this study agrees;
- `text`      means and differences as a reader wants them;
- `charts`    the curves of the report, and in `pretraining` those of the value pretraining;
- `notes`     how far the numbers carry;
- `page`      the report itself (tasks/reporting/templates/ablation.html.j2).

To add a figure to the tables: a value in `summary.row_summary` and a column in `page`; a claim: a function in
`findings`.
"""
