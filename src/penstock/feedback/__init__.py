"""What consumers and operators tell upstream: messages, the control log, guards, and how a run listens."""
