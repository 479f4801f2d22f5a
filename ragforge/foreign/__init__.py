"""Meeting what is not ours: users' functions and objects, their services, and what these return."""
