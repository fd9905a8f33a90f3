"""The interpreters: one file for each way to give ops a meaning at a level."""
