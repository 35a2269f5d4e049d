"""Graph passes: one pass a file, in folders by subject, and the code that runs pipelines."""
