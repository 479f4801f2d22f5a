"""Files of many shapes, which other tools and people make, and those that are written for them."""
