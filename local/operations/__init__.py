"""What an operator runs on real databases and deployments, without the local stack."""
