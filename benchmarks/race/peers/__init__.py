"""The peers, one file each; a peer's library is imported when it is entered, not before."""
