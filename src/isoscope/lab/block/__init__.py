"""The untrained block under a bias common to all inputs."""
