"""What a run has measured of itself: rows, costs and selectivities by operator, backlogs by source. Pure functions."""
