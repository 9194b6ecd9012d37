"""What a query says, apart from how it runs: schemas, expressions, patterns, punctuations, operators, plans.

Everything here is immutable, knows nothing of Spark, and can be printed, compared and stored as JSON.
"""
