"""What all rooms share: configuration, grading, statistics, records, lineage, the command line."""
