"""What files and the environment say for options that a command line leaves out."""
