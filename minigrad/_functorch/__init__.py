"""Private names of torch under which PyTorch's own tests ask for parts of the transforms."""
