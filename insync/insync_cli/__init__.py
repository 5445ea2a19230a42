"""The command line. Thin: it reads arguments, calls the packages that do the work, and prints."""
