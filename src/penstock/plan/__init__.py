"""What a query says, apart from how it runs: the base of all operators, plans, windows, promises of sources, and walks
over plans that every operator can be asked for."""
