"""The words of contracts: templates, schemes, what flows on an edge, verdicts, rates and sizes."""
