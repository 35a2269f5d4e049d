"""Settings: values from files and the environment for options missing on the command line."""
