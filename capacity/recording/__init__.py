"""What a pass leaves behind: decisions, actions, replicas, samples, and what the next pass needs."""
