"""Who may use how much: pure rules over scopes and quota rows."""
