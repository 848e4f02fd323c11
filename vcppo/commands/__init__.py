"""The commands of `python -m vcppo`, one module each.

- `compare`   paired difference of two evaluations
- `config`    show, use and list profiles
- `demo`      the whole pipeline on one profile, with a last screen
- `grade`     grade answers by hand
- `lineage`   what made a file, and what was made from it

To add one: a module here named as the command, with `add_parser(subparsers)` and `run(args) -> int | None`.
The command line imports every module for its help, so heavy imports belong inside `run`.
"""
