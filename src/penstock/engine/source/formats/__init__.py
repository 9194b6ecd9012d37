"""From bytes to rows: Parquet, CSV, JSON, generated rows."""
