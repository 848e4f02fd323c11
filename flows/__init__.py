"""WHEN things run: Prefect flows, their deployments, the local server that runs them.

- `nightly`    all stages in order, the evaluation table, and the promotion of a policy that passes its gate
- `train`      everything up to the trained policy
- `evaluate`   evaluation and report of the trained policy
- `ablation`   a study: training runs side by side (ablation/dvc.yaml)
- `pipeline`   what the flows share: a workspace, one Prefect task per stage, artifacts
- `artifacts`  tables and links that a run leaves in the UI
- `promotion`  the policy that passed the gate, kept with its records
- `services`   the local Prefect server and worker (`python -m flows up`, `python -m flows down`)

DVC decides what is up to date, not Prefect: a flow asks for every stage, and DVC skips what has not changed.
To add a flow: a module with a `@flow` function that calls `pipeline.run_stages`, and its entry in
prefect.yaml.
"""
