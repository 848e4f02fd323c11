"""Tests, in the rooms of what they test. Those that start something heavy are marked `slow` and run last."""
