"""What runs of this room share beside their experiments: the programs of exported models."""
