"""The devices: one file for each way to hold arrays and to order copies."""
