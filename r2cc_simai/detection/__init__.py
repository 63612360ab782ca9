"""When each end of a broken path knows, which part it blames, and how often it is wrong."""
