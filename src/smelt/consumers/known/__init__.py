"""One consumer a file. Each file names the document or the measurement behind its rows."""
