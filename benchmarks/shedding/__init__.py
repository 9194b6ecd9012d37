"""Load shedding in a simulator: what each way of giving up costs, against the shapes that others have published."""
