"""Papers, each reproduced in a folder of its own."""
