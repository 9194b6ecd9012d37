"""What a promise or a message can say: types, schemas, restrictions, patterns, and sets of patterns kept small."""
