"""WHAT is done: one module per pipeline stage with the input and output around it.

- `prepare`, `validate`            data
- `sft`, `reward_model`, `rollouts`, `pretrain_critic`, `train`   training
- `evaluate`, `report`             results
- `stage`    what every stage shares: work directory, publishing, record, failure record
- `sources/` adapters for the kinds of problem sources

`python -m tasks NAME` runs one. To add a stage: a module with `run(context) -> metrics`, and its entry in
dvc.yaml; nothing else knows the list.
"""
