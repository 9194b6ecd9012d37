"""What streams say whose tuples have lifetimes and can be taken back, and what operators come to on them by definition.

- `event`: the events and their notation; `history`: what a stream says in the end
- `oracle`: the operators, from table to table
"""
