"""Spark itself: Java, session, jobs, and what goes wrong there."""
