"""Union: all events of all inputs."""
