"""Element types changed on request; no pass here runs by default."""
