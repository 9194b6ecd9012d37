"""SQL for streams, translated to the algebra."""
