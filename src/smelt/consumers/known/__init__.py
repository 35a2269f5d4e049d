"""The known consumers, one in each file, which names the document or measurement of its limits."""
