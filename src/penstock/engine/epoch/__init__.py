"""The driver's side of an epoch: plan, submit, punctuate, commit, recover."""
