"""How far a judge is to be trusted, by labels of people: agreement, samples, corrections."""
