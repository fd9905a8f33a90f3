"""The graph of one level: nodes, and what they keep from forward to backward."""
